import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Attributes, Histogram, Meter, Span, Tracer, UpDownCounter } from '@opentelemetry/api'
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
    request: (request) => new MeasuredRequest(request, { duration, streams, tracer, propagate }),
  }
}

interface Instruments {
  readonly duration: Histogram
  /** Open event streams. */
  readonly streams: UpDownCounter
  readonly tracer: Tracer
  readonly propagate: boolean
}

/** The span and the measurements of one attempt. */
class MeasuredRequest implements RequestObservation {
  readonly headers: Record<string, string> = {}
  readonly #instruments: Instruments
  readonly #start = performance.now()
  readonly #isStream: boolean
  readonly #attributes: Attributes
  readonly #template: Attributes
  readonly #span: Span
  #status: number | undefined
  #isMeasured = false
  #isOpen = false

  constructor(request: ObservedRequest, instruments: Instruments) {
    const { method, url, attempt, isStream } = request
    this.#instruments = instruments
    this.#isStream = isStream
    this.#attributes = attributesOf(request)
    this.#template = templateOf(request.path)
    this.#span = instruments.tracer.startSpan(`${method} ${this.#template['url.template'] ?? ''}`.trim(), {
      kind: SpanKind.CLIENT,
      attributes: {
        ...this.#attributes,
        'url.full': url,
        ...(attempt > 1 && { 'http.request.resend_count': attempt - 1 }),
      },
    })
    if (instruments.propagate) propagation.inject(trace.setSpan(context.active(), this.#span), this.headers)
  }

  responded(code: number): void {
    this.#status = code
    // A stream may last for hours, so a 200 is reported at once. Another status is reported with its error at the end.
    if (!this.#isStream || code !== 200) return
    this.#isOpen = true
    this.#instruments.streams.add(1, this.#template)
    this.#measure()
  }

  ended(error?: unknown): void {
    if (this.#isOpen) this.#instruments.streams.add(-1, this.#template)
    this.#measure(error)
  }

  #measure(error?: unknown): void {
    if (this.#isMeasured) return
    this.#isMeasured = true
    const status = this.#status
    const outcome: Attributes = {
      ...(status !== undefined && { 'http.response.status_code': status }),
      ...(error !== undefined && errorType(error)),
    }
    this.#span.setAttributes(outcome)
    if (error !== undefined) {
      // The status of the response says it already.
      const message = status === undefined && error instanceof Error ? error.message : undefined
      this.#span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
    }
    this.#span.end()
    this.#instruments.duration.record(secondsSince(this.#start), { ...this.#attributes, ...outcome })
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
