import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Attributes, Meter, Tracer } from '@opentelemetry/api'
import type { ClientObserver, ObservedRequest, RequestObservation } from '../transport/observer.ts'
import { DURATION_BUCKETS, errorType, secondsSince, templateOf } from './attributes.ts'

/** Measures and traces each attempt of a request, by the semantic conventions of HTTP clients. */
export function requestObserver(meter: Meter, tracer: Tracer, propagate: boolean): ClientObserver {
  const duration = meter.createHistogram('http.client.request.duration', {
    description: 'Duration of HTTP client requests; of an event stream, until its response began',
    unit: 's',
    advice: { explicitBucketBoundaries: DURATION_BUCKETS },
  })
  const streams = meter.createUpDownCounter('rivulet.client.streams', {
    description: 'Event streams that are open',
    unit: '{stream}',
  })
  return {
    request(request): RequestObservation {
      const start = performance.now()
      const attributes = attributesOf(request)
      const { method, url, attempt, isStream } = request
      const template = templateOf(request.path)
      const span = tracer.startSpan(`${method} ${template['url.template'] ?? ''}`.trim(), {
        kind: SpanKind.CLIENT,
        attributes: {
          ...attributes,
          'url.full': url,
          ...(attempt > 1 && { 'http.request.resend_count': attempt - 1 }),
        },
      })
      const headers: Record<string, string> = {}
      if (propagate) propagation.inject(trace.setSpan(context.active(), span), headers)
      const open = { ...template }
      let status: number | undefined
      let isMeasured = false
      let isOpen = false

      const measure = (error?: unknown) => {
        if (isMeasured) return
        isMeasured = true
        const outcome: Attributes = {
          ...(status !== undefined && { 'http.response.status_code': status }),
          ...(error !== undefined && errorType(error)),
        }
        span.setAttributes(outcome)
        if (error !== undefined) {
          // The status of the response says it already.
          const message = status === undefined && error instanceof Error ? error.message : undefined
          span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
        }
        span.end()
        duration.record(secondsSince(start), { ...attributes, ...outcome })
      }

      return {
        headers,
        responded(code) {
          status = code
          // A stream may last for hours, so a 200 is reported at once. Another status is reported with its error at the end.
          if (!isStream || code !== 200) return
          isOpen = true
          streams.add(1, open)
          measure()
        },
        ended(error) {
          if (isOpen) streams.add(-1, open)
          measure(error)
        },
      }
    },
  }
}

/** The attributes that metrics and spans share. */
function attributesOf({ method, url, path }: ObservedRequest): Attributes {
  const { hostname, port, protocol } = new URL(url)
  return {
    'http.request.method': method,
    'server.address': hostname,
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    ...templateOf(path),
  }
}
