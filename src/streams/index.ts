/**
 * Processes over any stream of events, in memory: state by key, timers, and events that they emit.
 *
 * @module rivulet/streams
 */
export { inMemory } from './in-memory.ts'
export type { InMemoryOptions } from './in-memory.ts'
export { ProcessError } from './process-error.ts'
export type {
  OutputEvent,
  ProcessContext,
  ProcessFunctions,
  StreamEntry,
  StreamEntryOf,
  StreamInput,
} from './process-functions.ts'
export type { TimerClock } from './timers.ts'
