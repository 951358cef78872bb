import type { DatabaseSync } from 'node:sqlite'
import { type Clock, realTimeOf } from '../clock.ts'
import type { Interactions } from '../interactions/interactions.ts'
import type { Processor } from '../processor/processor.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import { requireCredit } from './credit.ts'
import { groupRoutes, type GroupRoutesOptions } from './group-routes.ts'
import { RunPool } from './run-pool.ts'
import { runEventRoutes, type RunEventRoutesOptions, runRoutes } from './run-routes.ts'
import { TaskStore, type RunRecord } from './task-store.ts'

/** Settings of {@link createTasks}. */
export interface TasksOptions
  extends
    Pick<GroupRoutesOptions, 'openStream' | 'beforeRequest'>,
    Pick<RunEventRoutesOptions, 'openWriter'> {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly outbox: Outbox
  readonly interactions: Interactions
  readonly processor: Processor
  /** Maximum number of runs executed at once. */
  readonly concurrency: number
  /** Maximum number of active runs; undefined is without a limit. */
  readonly credit?: number | undefined
  /** Maximum duration of a stream, in ms of real time (§4.4); 570 s at most for the stream of a single run. */
  readonly streamDuration: number
  /** Called with errors, and with the `ref_id` of the response if there is one. */
  readonly onError: (error: unknown, ref_id?: string) => void
}

/** Task runs and groups: their routes and their execution. */
export interface Tasks {
  readonly groups: ReturnType<typeof groupRoutes>
  readonly runs: ReturnType<typeof runRoutes>
  readonly runEvents: ReturnType<typeof runEventRoutes>
  /** Starts to execute runs, beginning with those of an earlier process. */
  start(): void
  records(): RunRecord[]
  /** Ends streams and requests that wait for results, and stops executing runs. */
  close(): void
}

export function createTasks(options: TasksOptions): Tasks {
  const { database, clock, outbox, interactions, openStream, beforeRequest, streamDuration, onError } =
    options
  const store = new TaskStore(database, clock, outbox, interactions)
  const { processor, concurrency } = options
  const pool = new RunPool({ store, clock, processor, concurrency, onError })
  const streams = new Set<() => void>()
  const closing = new AbortController()
  const onRuns = () => pool.wake()
  const { credit = Infinity } = options
  const beforeRuns = (count: number) => requireCredit(store, credit, count)
  return {
    groups: groupRoutes({
      store,
      clock: realTimeOf(clock),
      openStream,
      beforeRequest,
      beforeRuns,
      streamDuration,
      onRuns,
      onError,
      streams,
    }),
    runs: runRoutes({ store, clock: realTimeOf(clock), beforeRuns, onRuns, closing: closing.signal }),
    runEvents: runEventRoutes({
      store,
      clock: realTimeOf(clock),
      openWriter: options.openWriter,
      streamDuration,
      onError,
      streams,
    }),
    start: () => pool.start(),
    records: () => store.records(),
    close() {
      pool.stop()
      closing.abort()
      for (const end of streams) end()
    },
  }
}
