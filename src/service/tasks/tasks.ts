import type { DatabaseSync } from 'node:sqlite'
import { type Clock, realTimeOf } from '../clock.ts'
import type { Credit } from '../credit.ts'
import type { Interactions, Turn } from '../interactions/interactions.ts'
import type { Memories } from '../memory/memories.ts'
import type { Processor } from '../processor/processor.ts'
import type { ProcessorSlots } from '../processor/slots.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import { groupRoutes, type GroupRoutesOptions } from './group-routes.ts'
import type { SchemaChecks } from './run-request.ts'
import { RunPool } from './run-pool.ts'
import { runEventRoutes, type RunEventRoutesOptions, runRoutes } from './run-routes.ts'
import { createRuns, type Runs, untilEnded } from './runs.ts'
import { runIdOf, TaskStore, type CompletedRun, type RunRecord } from './task-store.ts'

/** Settings of {@link createTasks}. */
export interface TasksOptions
  extends
    Pick<GroupRoutesOptions, 'openStream' | 'beforeRequest'>,
    Pick<RunEventRoutesOptions, 'openWriter'> {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly outbox: Outbox
  readonly interactions: Interactions
  /** Keeps the runs that have completed. */
  readonly memories: Memories
  readonly processor: Processor
  /** Checks the schemas of requests. */
  readonly checks: SchemaChecks
  /** The executions in flight, of runs and of requests. */
  readonly slots: ProcessorSlots
  /** The credit that active runs reserve. */
  readonly credit: Credit
  /** Maximum duration of a stream, in ms of real time (§4.4); 570 s at most for the stream of a single run. */
  readonly streamDuration: number
  /** Called with errors, and with the `ref_id` of the response if there is one. */
  readonly onError: (error: unknown, ref_id?: string) => void
}

/** The interactions that a request may continue, also while their runs are active. */
export interface PreviousInteractions {
  isKnown(id: string): boolean
  /**
   * Resolves with the turns of a known interaction, oldest first, once its run has ended.
   *
   * @throws The signal's reason if it is aborted first.
   */
  turns(id: string, signal: AbortSignal): Promise<readonly Turn[]>
}

/** Task runs and groups: their routes and their execution. */
export interface Tasks {
  readonly groups: ReturnType<typeof groupRoutes>
  readonly runs: ReturnType<typeof runRoutes>
  readonly runEvents: ReturnType<typeof runEventRoutes>
  /** Single runs, without their routes. */
  readonly single: Runs
  readonly interactions: PreviousInteractions
  /** Starts to execute runs, beginning with the runs of an earlier process. */
  start(): void
  /** The completed run with the data to execute it again; undefined for any other run. */
  completed(runId: string): CompletedRun | undefined
  records(): RunRecord[]
  /** Ends streams and requests that wait for results, and stops executing runs. */
  close(): void
}

export function createTasks(options: TasksOptions): Tasks {
  const { clock, openStream, beforeRequest, streamDuration, onError } = options
  const store = new TaskStore(options)
  const { processor, checks, slots } = options
  const pool = new RunPool({ store, clock, processor, slots, onError })
  const streams = new Set<() => void>()
  const closing = new AbortController()
  const onRuns = () => pool.wake()
  const { credit } = options
  credit.reservedBy(() => store.active())
  const beforeRuns = (count: number) => credit.require(count)
  const single = createRuns({ store, checks, beforeRuns, onRuns })
  return {
    single,
    groups: groupRoutes({
      store,
      checks,
      clock: realTimeOf(clock),
      openStream,
      beforeRequest,
      beforeRuns,
      streamDuration,
      onRuns,
      onError,
      streams,
    }),
    runs: runRoutes({ runs: single, store, clock: realTimeOf(clock), closing: closing.signal }),
    runEvents: runEventRoutes({
      runs: single,
      store,
      clock: realTimeOf(clock),
      openWriter: options.openWriter,
      streamDuration,
      onError,
      streams,
    }),
    interactions: {
      isKnown: (id) => store.isInteraction(id),
      turns: (id, signal) => turnsOf(store, id, signal),
    },
    start: () => pool.start(),
    completed: (runId) => store.completed(runId),
    records: () => store.records(),
    close() {
      pool.stop()
      closing.abort()
      for (const end of streams) end()
    },
  }
}

async function turnsOf(store: TaskStore, id: string, signal: AbortSignal): Promise<readonly Turn[]> {
  await untilEnded(store, runIdOf(id), signal)
  signal.throwIfAborted()
  return store.context(id)
}
