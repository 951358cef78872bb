/**
 * The event log on NATS JetStream. It needs `@nats-io/transport-node`, `@nats-io/jetstream` and `@nats-io/kv` 3.4.
 *
 * @module rivulet/nats
 */
export {
  FencedError,
  LogClosedError,
  LogConflictError,
  LogError,
  LogInUseError,
  LogPositionError,
  LogServerError,
  LogUnsupportedError,
  LogValueError,
} from './errors.ts'
export { natsLog } from './nats-log.ts'
export type { NatsCredentials, NatsLogOptions, NatsTls } from './nats-log.ts'
export { ArgumentError } from '../protocol/argument-error.ts'
