import type { DatabaseSync } from 'node:sqlite'
import type { Hono } from 'hono'
import type { Clock } from '../clock.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { transaction } from '../database.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import { EventLog, type MonitorRecord } from './event-log.ts'
import { execute } from './execution.ts'
import { identifier } from './identifier.ts'
import type { MonitorRequest } from './request.ts'
import { monitorRoutes } from './routes.ts'
import { createSchedule } from './schedule.ts'
import { searchFor } from './search.ts'
import { SeenPassages } from './seen.ts'
import { MonitorStore } from './store.ts'

/** What the monitors need. */
export interface MonitorsOptions {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly corpus: Corpus
  readonly outbox: Outbox
  /** Hears when the database fails; what is due then waits for 5 s. Default: the error is thrown and nobody catches it. */
  readonly onError?: (error: unknown) => void
}

/** The service's monitors of type `event_stream`. */
export interface Monitors {
  /** The endpoints under `/v1/monitors`. */
  routes(): Hono
  /** Begins to run monitors, with those that became due while the service was away. */
  start(): void
  /** Every stored event of every monitor, oldest first. */
  records(): readonly MonitorRecord[]
  /** Resolves when no execution is under way. */
  settled(): Promise<void>
  /** Runs no more monitors, and resolves when those under way have ended. To be called before the corpus is closed. */
  close(): Promise<void>
}

/**
 * Monitors of a search query (§2.1): each runs once on creation, then at its frequency, and reports what is new in the
 * corpus since the time before. Everything about them is in the database, so that they outlive the process.
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
   * What is there at creation, and so is no news. It is taken here and not by the first execution, which would take a
   * document that came in between for an old one. Undefined where the corpus fails: the first execution will say why.
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
