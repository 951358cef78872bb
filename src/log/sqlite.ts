/**
 * The event log in an SQLite file, and copies of a log in a file or on a server.
 *
 * @module rivulet/log/sqlite
 */
export { exactlyOnce } from './consume/exactly-once.ts'
export type { PlainEffect, PreparedEffect } from './consume/exactly-once.ts'
export { rewindEffects } from './consume/rewind-effects.ts'
export type { RewoundEffects } from './consume/rewind-effects.ts'
export {
  EffectError,
  FencedError,
  LogClosedError,
  LogConflictError,
  LogError,
  LogFileError,
  LogInUseError,
  LogPositionError,
  LogValueError,
} from './errors.ts'
export { migrateLog } from './migrate.ts'
export type { Migrated, MigrateOptions } from './migrate.ts'
export { sqliteLog } from './sqlite-log.ts'
export type { SqliteLogOptions } from './sqlite-log.ts'
export { ArgumentError } from '../protocol/argument-error.ts'
