import type { Hono } from 'hono'
import { transaction } from '../database.ts'
import { EventLog, type MonitorRecord } from './event-log.ts'
import { execute, type ExecutionContext } from './execution.ts'
import { identifier } from '../identifier.ts'
import type { MonitorRequest } from './request.ts'
import { monitorRoutes } from './routes.ts'
import { createSchedule } from './schedule.ts'
import { searchFor } from './search.ts'
import { SeenPassages } from './seen.ts'
import { MonitorStore } from './store.ts'

/** Settings of {@link createMonitors}. */
export interface MonitorsOptions extends Omit<ExecutionContext, 'store' | 'log' | 'seen'> {
  /** Called when the database fails; executions then pause for 5 s. Default: the error is thrown, uncaught. */
  readonly onError?: (error: unknown) => void
}

/** The service's monitors of type `event_stream`. */
export interface Monitors {
  /** The endpoints under `/v1/monitors`. */
  routes(): Hono
  /** Starts to execute monitors, beginning with overdue ones. */
  start(): void
  /** Every stored event of every monitor, oldest first. */
  records(): readonly MonitorRecord[]
  /** Resolves when no execution is running. */
  settled(): Promise<void>
  /** Starts no more executions, and resolves when the running ones have ended. Call it before the corpus is closed. */
  close(): Promise<void>
}

/**
 * Creates the monitors of search queries (§2.1). Each runs on creation and then at its frequency, and reports what is new in
 * the corpus. All state is in the database and survives a restart.
 */
export function createMonitors(options: MonitorsOptions): Monitors {
  const { database, clock, corpus, onError } = options
  const store = new MonitorStore(database)
  const log = new EventLog(database)
  const seen = new SeenPassages(database)
  const context = { ...options, store, log, seen }
  const schedule = createSchedule({ clock, store, execute: (id) => execute(id, context), onError })

  async function create(request: MonitorRequest): Promise<string> {
    const id = identifier('monitor')
    const baseline = await currentPassages(request)
    transaction(database, () => {
      store.add(id, request, clock.now())
      if (baseline === undefined) return
      seen.mark(id, baseline, (url) => corpus.document(url)?.text)
      store.baselined(id)
    })
    schedule.wake()
    return id
  }

  /**
   * The baseline: passages that exist at creation. The first execution would mistake newer documents for existing ones, so it
   * is taken here. Undefined if the corpus fails; the first execution then reports the error.
   */
  async function currentPassages(request: MonitorRequest) {
    try {
      await corpus.settled()
      return searchFor(request, corpus).passages
    } catch {
      return undefined
    }
  }

  function trigger(id: string): void {
    store.trigger(id)
    schedule.wake()
  }

  return {
    routes: () => monitorRoutes({ store, log, create, trigger }),
    start: () => schedule.start(),
    records: () => log.records(),
    settled: () => schedule.settled(),
    close: () => schedule.close(),
  }
}
