import type { Meter } from '@opentelemetry/api'
import type { GatewayObserver } from '../gateway/observer.ts'
import { ignoringErrors } from '../protocol/observers.ts'
import { DURATION_BUCKETS, errorType, secondsSince } from './attributes.ts'

/** The methods that a gateway answers. Any other one is a name that a client has made up. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])

/** Measures the connections of a gateway, its requests and refusals, and what it encodes and sends. */
export function gatewayObserver(meter: Meter): GatewayObserver {
  const connections = meter.createUpDownCounter('rivulet.gateway.connections', {
    description: 'Streams that are open',
    unit: '{connection}',
  })
  const duration = meter.createHistogram('rivulet.gateway.request.duration', {
    description: 'Duration of requests; of a stream, until its response began',
    unit: 's',
    advice: { explicitBucketBoundaries: DURATION_BUCKETS },
  })
  const counter = (name: string, unit: string, description: string) =>
    meter.createCounter(`rivulet.gateway.${name}`, { description, unit })
  const refusals = counter('refusals', '{refusal}', 'Requests that were refused, and views of streams')
  const encoded = counter('encoded', '{batch}', 'Batches of frames with rows that were encoded')
  const encodedSize = counter('encoded.size', 'By', 'Size of these batches')
  const sent = counter('sent', '{batch}', 'Batches of frames that clients have taken')
  const sentSize = counter('sent.size', 'By', 'Size of these batches')
  return {
    async request({ endpoint, method }, proceed) {
      const start = performance.now()
      const attributes = {
        'http.route': endpoint,
        'http.request.method': METHODS.has(method) ? method : '_OTHER',
      }
      try {
        const response = await proceed()
        const status = { 'http.response.status_code': response.status }
        ignoringErrors(() => duration.record(secondsSince(start), { ...attributes, ...status }))
        return response
      } catch (error) {
        ignoringErrors(() => duration.record(secondsSince(start), { ...attributes, ...errorType(error) }))
        throw error
      }
    },
    refused: ({ endpoint, code }) =>
      refusals.add(1, { 'http.route': endpoint, 'rivulet.gateway.refusal.code': code }),
    connected() {
      connections.add(1)
      return () => connections.add(-1)
    },
    encoded(size) {
      encoded.add(1)
      encodedSize.add(size)
    },
    sent(size) {
      sent.add(1)
      sentSize.add(size)
    },
  }
}
