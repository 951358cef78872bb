/**
 * OpenTelemetry metrics and traces of a client, a log and a gateway. Needs the package `@opentelemetry/api`.
 *
 * @module rivulet/otel
 */
export { instrument } from './instrument.ts'
export type { Instrumentation, InstrumentOptions } from './instrument.ts'
export type { Handler } from './handlers.ts'
