import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Attributes, Context, Counter, Histogram, Meter, Tracer } from '@opentelemetry/api'
import { isObject } from '../protocol/json.ts'
import { ignoringErrors } from '../protocol/observers.ts'
import { isThenable } from '../protocol/thenable.ts'
import { DURATION_BUCKETS, errorType, secondsSince } from './attributes.ts'

/** A handler of `deliver` or `log.consume`. */
export type Handler<T> = (event: T, signal: AbortSignal) => void | PromiseLike<unknown>

type Handled = void | PromiseLike<unknown>

/** A call of a handler that is being measured. */
interface Call {
  /** The context for the handler's work. */
  readonly context: Context
  ended(failure?: { readonly error: unknown }): void
}

/** Measures and traces the calls of handlers, by the semantic conventions of messaging. */
export class Handlers {
  readonly #tracer: Tracer
  readonly #duration: Histogram
  readonly #retries: Counter
  /** The events whose last attempt has failed, by handler. */
  readonly #failed = new Map<string, WeakSet<object>>()

  constructor(meter: Meter, tracer: Tracer) {
    this.#tracer = tracer
    this.#duration = meter.createHistogram('messaging.process.duration', {
      description: 'Duration of the calls of handlers, each attempt by itself',
      unit: 's',
      advice: { explicitBucketBoundaries: DURATION_BUCKETS },
    })
    this.#retries = meter.createCounter('rivulet.handler.retries', {
      description: 'Calls of handlers after one that failed',
      unit: '{retry}',
    })
  }

  /** Calls a handler, and returns its result or throws its error. */
  call(consumer: string, event: unknown, handle: () => Handled, kind?: 'consumer' | 'process'): Handled {
    const call = ignoringErrors(() => this.#begin(consumer, event, kind))
    if (call === undefined) return handle()
    let result: Handled
    try {
      result = within(call.context, handle)
    } catch (error) {
      call.ended({ error })
      throw error
    }
    if (!isThenable(result)) return call.ended()
    // Its `then` is called once: a query of some libraries runs at each call.
    return result.then(
      () => call.ended(),
      (error: unknown) => {
        call.ended({ error })
        throw error
      },
    )
  }

  #begin(consumer: string, event: unknown, kind: 'consumer' | 'process' | undefined): Call {
    const start = performance.now()
    const attributes: Attributes = {
      'messaging.system': 'rivulet',
      'messaging.operation.name': 'process',
      'messaging.consumer.group.name': consumer,
      ...(kind !== undefined && { 'rivulet.reader.kind': kind }),
      ...typeOf(event),
    }
    const failed = this.#failedOf(`${kind}:${consumer}`)
    // A batch is an array.
    const subject = typeof event === 'object' && event !== null ? event : undefined
    if (subject !== undefined && failed.has(subject)) ignoringErrors(() => this.#retries.add(1, attributes))
    const span = this.#tracer.startSpan(`process ${consumer}`, {
      kind: SpanKind.CONSUMER,
      attributes: { ...attributes, 'messaging.operation.type': 'process', ...identityOf(event) },
    })
    return {
      context: trace.setSpan(context.active(), span),
      ended: (failure) => {
        if (failure === undefined) {
          if (subject !== undefined) failed.delete(subject)
        } else {
          if (subject !== undefined) failed.add(subject)
          const code = SpanStatusCode.ERROR
          ignoringErrors(() => span.setAttributes(errorType(failure.error)).setStatus({ code }))
        }
        ignoringErrors(() => span.end())
        ignoringErrors(() =>
          this.#duration.record(secondsSince(start), {
            ...attributes,
            ...(failure !== undefined && errorType(failure.error)),
          }),
        )
      },
    }
  }

  #failedOf(handler: string): WeakSet<object> {
    let failed = this.#failed.get(handler)
    if (failed === undefined) this.#failed.set(handler, (failed = new WeakSet()))
    return failed
  }
}

/** Calls the function within a context. An error of the context manager is ignored. */
function within(own: Context, call: () => Handled): Handled {
  let isCalled = false
  try {
    return context.with(own, () => {
      isCalled = true
      return call()
    })
  } catch (error) {
    if (isCalled) throw error
    return call()
  }
}

/** The type of an event. A value that is no event, such as an array of events, has none. */
function typeOf(event: unknown): Attributes {
  if (!isObject(event) || typeof event['type'] !== 'string') return {}
  return { 'rivulet.event.type': event['type'] }
}

/** The attributes that identify an event or an entry in a span. */
function identityOf(event: unknown): Attributes {
  if (Array.isArray(event)) return { 'messaging.batch.message_count': event.length }
  if (!isObject(event)) return {}
  const { id, source, position, revision } = event
  return {
    ...(typeof id === 'string' && { 'messaging.message.id': id }),
    ...(typeof source === 'string' && { 'rivulet.event.source': source }),
    ...(typeof position === 'string' && { 'rivulet.log.position': position }),
    ...(typeof revision === 'number' && { 'rivulet.log.revision': revision }),
  }
}
