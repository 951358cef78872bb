/// <reference lib="esnext.disposable" preserve="true" />
import { metrics, trace } from '@opentelemetry/api'
import type { Meter, Tracer } from '@opentelemetry/api'
import type { ResearchClient } from '../client.ts'
import type { GatewayObserver } from '../gateway/observer.ts'
import { checkLog } from '../protocol/check-log.ts'
import type { EventLog } from '../log/event-log/event-log.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkBoolean, checkMethods, checkOptions } from '../protocol/check.ts'
import { ignoringErrors } from '../protocol/observers.ts'
import { countDiagnostics } from './diagnostics.ts'
import { gatewayObserver } from './gateway.ts'
import { Handlers } from './handlers.ts'
import type { Handler } from './handlers.ts'
import { gaugeLog } from './log-gauges.ts'
import { appendObserver } from './recording.ts'
import { requestObserver } from './requests.ts'

/** The objects to instrument, and the meter and tracer to use. */
export interface InstrumentOptions {
  /** A client: its requests, streams, retries, reconnects and dropped duplicates. Default: none. */
  readonly client?: Pick<ResearchClient, 'observe' | 'diagnostics'>
  /** A log: its recording, the handlers of its consumers, the functions of its processes, and the lag of its readers. Default: none. */
  readonly log?: Pick<EventLog, 'observe' | 'stats'>
  /** A gateway of `createGateway`: its connections, requests and refusals, and what it encodes and sends. Default: none. */
  readonly gateway?: { observe(observer: GatewayObserver): () => void }
  /** The meter of the metrics. Default: the one of the global meter provider at the call. */
  readonly meter?: Meter
  /** The tracer of the spans. Default: the one of the global tracer provider. */
  readonly tracer?: Tracer
  /** Sends the trace context, such as `traceparent`, to the service with each request. Default false. */
  readonly propagate?: boolean
}

const OPTIONS = Object.keys({
  client: true,
  log: true,
  gateway: true,
  meter: true,
  tracer: true,
  propagate: true,
} satisfies Record<keyof InstrumentOptions, true>)

/** Metrics and traces that are being collected. */
export interface Instrumentation extends Disposable {
  /**
   * Wraps a handler of `deliver`, so that its calls are measured. The handlers of `log.consume` need no wrapper.
   *
   * @param name Names the handler in the attributes `messaging.consumer.group.name`.
   */
  handler<T>(name: string, handler: Handler<T>): Handler<T>
  /** Collects nothing more. */
  dispose(): void
}

/**
 * Collects OpenTelemetry metrics and spans of a client, a log and a gateway, until it is disposed of. docs/reference/observability.md lists them.
 * Attributes of metrics contain no ids; attributes of spans do. An error that a meter or a tracer throws is ignored.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 * import { memoryStore, openLog } from 'rivulet/log'
 * import { instrument } from 'rivulet/otel'
 *
 * const client = createClient()
 * const log = await openLog(memoryStore())
 * using telemetry = instrument({ client, log })
 * ```
 *
 * @throws ArgumentError for an unknown option or an invalid one, and without any of the three.
 */
export function instrument(options: InstrumentOptions): Instrumentation {
  checkOptions('options', options ?? null, OPTIONS)
  const { client, log, gateway, propagate = false } = options
  if (client === undefined && log === undefined && gateway === undefined) {
    throw new ArgumentError('options', { message: 'instrument needs a client, a log or a gateway' }, options)
  }
  checkBoolean('propagate', propagate)
  const { meter = metrics.getMeter('rivulet'), tracer = trace.getTracer('rivulet') } = options
  if (client !== undefined) checkMethods('client', client, 'a client', ['observe'])
  if (log !== undefined) checkLog(log, ['observe', 'stats'])
  if (gateway !== undefined) checkMethods('gateway', gateway, 'a gateway', ['observe'])
  checkMethods('meter', meter, 'a meter', ['createCounter'])
  checkMethods('tracer', tracer, 'a tracer', ['startSpan'])
  const handlers = new Handlers(meter, tracer)
  const ends: (() => void)[] = []
  if (client !== undefined) {
    ends.push(client.observe(requestObserver(meter, tracer, propagate)))
    ends.push(countDiagnostics(meter, client.diagnostics))
  }
  if (log !== undefined) {
    ends.push(gaugeLog(meter, log))
    ends.push(log.observe(appendObserver(meter, tracer)))
    ends.push(
      log.observe({
        handle: (reader, entry, proceed, kind) => handlers.call(reader, entry, proceed, kind),
      }),
    )
  }
  if (gateway !== undefined) ends.push(gateway.observe(gatewayObserver(meter)))
  const dispose = () => {
    for (const end of ends.splice(0)) ignoringErrors(end)
  }
  return {
    handler: (name, handler) => (event, signal) => handlers.call(name, event, () => handler(event, signal)),
    dispose,
    [Symbol.dispose]: dispose,
  }
}
