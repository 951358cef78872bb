import type { DatabaseSync } from 'node:sqlite'
import { isDeepStrictEqual } from 'node:util'
import type { Hono } from 'hono'
import type { UpdateMonitorRequest } from '../../protocol/monitor.ts'
import { allowsDocument } from '../corpus/source-policy.ts'
import type { Clock } from '../clock.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { transaction } from '../database.ts'
import type { Memories } from '../memory/memories.ts'
import { EventLog, type MonitorRecord } from './event-log.ts'
import { execute, type ExecutionContext } from './execution.ts'
import { type HttpProblem, problem } from '../http/problem.ts'
import { issue, unprocessable } from '../http/validation.ts'
import { identifier } from '../identifier.ts'
import type { EventStreamRequest, MonitorRequest, SnapshotRequest } from './request.ts'
import { monitorRoutes } from './routes.ts'
import { Schedule } from './schedule.ts'
import { searchFor } from './search.ts'
import { SeenPassages, textsOf } from './seen.ts'
import { MonitorStore, type StoredMonitor } from './store.ts'
import { refusedField, rescheduled, updatedRequest } from './update.ts'

/** Maximum number of concurrent searches. Low, since searches block the event loop. */
const MAX_SEARCHES = 4
/** Maximum number of concurrent runs. Each also needs a slot of the processor. */
const MAX_RUNS = 4

/** Settings of {@link Monitors}. */
export interface MonitorsOptions extends Omit<ExecutionContext, 'store' | 'log' | 'seen'> {
  /** Called when the database fails; executions then pause for 5 s. Default: the error is thrown, uncaught. */
  readonly onError?: (error: unknown) => void
}

/**
 * The service's monitors (§2.1). Each runs on creation and then at its frequency. A monitor of type `event_stream` reports news in the
 * corpus. A monitor of type `snapshot` repeats a run, and reports which fields of its output have changed. All state is in the database and
 * survives a restart.
 */
export class Monitors {
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #corpus: Corpus
  readonly #memories: Memories
  readonly #completedRun: MonitorsOptions['completedRun']
  readonly #store: MonitorStore
  readonly #log: EventLog
  readonly #seen: SeenPassages
  readonly #searches: Schedule
  readonly #runs: Schedule

  constructor(options: MonitorsOptions) {
    const { database, clock, corpus, memories, completedRun, onError } = options
    this.#database = database
    this.#clock = clock
    this.#corpus = corpus
    this.#memories = memories
    this.#completedRun = completedRun
    this.#store = new MonitorStore(database)
    this.#log = new EventLog(database)
    this.#seen = new SeenPassages(database)
    const context = { ...options, store: this.#store, log: this.#log, seen: this.#seen }
    const common = {
      clock,
      store: this.#store,
      execute: (id: string, signal: AbortSignal) => execute(id, context, signal),
      onError,
    }
    this.#searches = new Schedule({ ...common, type: 'event_stream', concurrency: MAX_SEARCHES })
    this.#runs = new Schedule({ ...common, type: 'snapshot', concurrency: MAX_RUNS })
  }

  /** The endpoints under `/v1/monitors`. */
  routes(): Hono {
    return monitorRoutes({
      store: this.#store,
      log: this.#log,
      create: (request) => this.#create(request),
      update: (monitor, changes) => this.#update(monitor, changes),
      cancel: (monitor) => this.#cancel(monitor),
      trigger: (monitor) => this.#trigger(monitor),
    })
  }

  /** Starts to execute monitors, beginning with overdue ones. */
  start(): void {
    this.#searches.start()
    this.#runs.start()
  }

  /** Every stored event of every monitor, oldest first. */
  records(): readonly MonitorRecord[] {
    return this.#log.records()
  }

  /** Resolves when no execution is running. */
  async settled(): Promise<void> {
    await Promise.all([this.#searches.settled(), this.#runs.settled()])
  }

  /**
   * Starts no more executions, and resolves when the running searches have ended. Runs are aborted, and executed again at the
   * next start. Call it before the corpus is closed.
   */
  async close(): Promise<void> {
    await Promise.all([this.#searches.close(), this.#runs.close()])
  }

  async #create(request: MonitorRequest): Promise<string> {
    const id = identifier('monitor')
    if (request.type === 'snapshot') this.#createSnapshot(id, request)
    else await this.#createEventStream(id, request)
    this.#scheduleOf(request.type).wake()
    return id
  }

  #createSnapshot(id: string, request: SnapshotRequest): void {
    const { task_run_id } = request.settings
    const run = this.#completedRun(task_run_id)
    if (run === undefined) throw notCompleted(task_run_id)
    const { input, task_spec } = run.input
    const schema = task_spec?.output_schema
    const settings = { task_run_id, query: input, ...(schema !== undefined && { output_schema: schema }) }
    transaction(this.#database, () => {
      this.#store.add(id, { ...request, settings }, this.#clock.now())
      this.#store.keepSnapshot(id, run.output)
    })
  }

  async #createEventStream(id: string, request: EventStreamRequest): Promise<void> {
    const baseline = await this.#currentPassages(request)
    transaction(this.#database, () => {
      this.#store.add(id, request, this.#clock.now())
      if (baseline === undefined) return
      this.#seen.compare(id, baseline, textsOf(this.#corpus)).mark()
      this.#store.baselined(id)
    })
  }

  /**
   * The baseline: passages that exist at creation. The first execution would mistake newer documents for existing ones, so it
   * is taken here. Undefined if the corpus fails; the first execution then reports the error.
   */
  async #currentPassages(request: EventStreamRequest) {
    try {
      await this.#corpus.settled()
      return searchFor(request, this.#corpus).passages
    } catch {
      return undefined
    }
  }

  #trigger({ id, request }: StoredMonitor): void {
    this.#store.trigger(id)
    this.#scheduleOf(request.type).wake()
  }

  #cancel({ id, request }: StoredMonitor): void {
    transaction(this.#database, () => {
      this.#store.cancel(id)
      this.#memories.monitorCancelled(request.memory_scope_key, id)
    })
    this.#scheduleOf(request.type).cancel(id)
  }

  async #update(monitor: StoredMonitor, changes: UpdateMonitorRequest): Promise<void> {
    const refused = refusedField(monitor.request, changes)
    if (refused !== undefined) throw unprocessable([issue(['body', refused.field], refused.reason)])
    if (changes.settings !== undefined) await this.#corpus.settled()
    transaction(this.#database, () => {
      // Another update or the cancellation may have been faster.
      const current = this.#store.get(monitor.id) ?? monitor
      if (current.status === 'cancelled') throw cancelled(monitor.id)
      const updated = updatedRequest(current.request, changes)
      this.#store.update(monitor.id, updated, rescheduled(current, updated.frequency, this.#clock.now()))
      this.#markAdmitted(current, updated)
    })
    this.#scheduleOf(monitor.request.type).wake()
  }

  /** Marks as seen what only the updated sources include. It would be reported as new, although it is as old as the others. */
  #markAdmitted({ id, request, hasBaseline }: StoredMonitor, updated: MonitorRequest): void {
    if (request.type !== 'event_stream' || updated.type !== 'event_stream' || !hasBaseline) return
    const policy = request.settings.advanced_settings?.source_policy
    if (isDeepStrictEqual(policy, updated.settings.advanced_settings?.source_policy)) return
    const admitted = searchFor(updated, this.#corpus).passages.filter(
      (passage) => !allowsDocument(policy, passage),
    )
    this.#seen.compare(id, admitted, textsOf(this.#corpus)).mark()
  }

  #scheduleOf(type: MonitorRequest['type']): Schedule {
    return type === 'snapshot' ? this.#runs : this.#searches
  }
}

function notCompleted(runId: string): HttpProblem {
  const message = `Expected a completed run of this service; ${runId} is unknown, or has not completed`
  return unprocessable([issue(['body', 'settings', 'task_run_id'], message)])
}

function cancelled(id: string): HttpProblem {
  return problem(422, `Monitor ${id} is cancelled and cannot be updated: create a new one`)
}
