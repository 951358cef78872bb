/**
 * RxJS operators for streams of research events. They do not depend on HTTP and work with any observable.
 *
 * @module rivulet/operators
 */
export { batch } from './batch.ts'
export { dedupe } from './dedupe.ts'
export { deliver } from './deliver.ts'
export type { DeliverOptions } from './deliver.ts'
export { DrainTimeoutError } from './deliver/drain-timeout-error.ts'
export { keepPosition } from '../src/protocol/acknowledgement.ts'
export { Gate, gateOf } from '../src/protocol/gate.ts'
export type { Identified } from '../src/protocol/identified.ts'
export { iterate } from './iterate.ts'
export { mergeWebhooks } from './merge-webhooks.ts'
export { ofType } from './of-type.ts'
export type { OfType } from './of-type.ts'
export { reconnect } from './reconnect.ts'
export type { ReconnectOptions, Reconnection } from './reconnect.ts'
export type { DeadLetter } from './deliver/in-flight.ts'
export { underGate } from './under-gate.ts'
