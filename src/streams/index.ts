/**
 * Stream processing: definitions of windows and aggregates, and processes over any stream of events, in memory.
 *
 * @module rivulet/streams
 */
export { aggregate } from './definition/aggregate.ts'
export type { ResultOf } from './definition/aggregate.ts'
export { average, collect, count, distinct, latest, max, min, sum } from './definition/aggregates.ts'
export type { Aggregate } from './definition/aggregates.ts'
export { define } from './definition/define.ts'
export type { Definition, ResultEvent } from './definition/define.ts'
export { from, keyBy, map, where } from './definition/event-stream.ts'
export type { EventStream, KeyedStream } from './definition/event-stream.ts'
export { join } from './definition/join.ts'
export type { JoinResultOf } from './definition/join.ts'
export type { Stage } from './definition/stage.ts'
export { enrich, latestBy } from './definition/table.ts'
export type { Table } from './definition/table.ts'
export { percentile } from './definition/percentile.ts'
export { testStream } from './definition/test-stream.ts'
export type { TestEvent } from './definition/test-stream.ts'
export { hopping, session, tumbling } from './definition/windows.ts'
export type { TimeSpan, Windows } from './definition/windows.ts'
export { orderByTime } from './order-by-time.ts'
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
