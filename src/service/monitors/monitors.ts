import { isDeepStrictEqual } from 'node:util'
import type { Hono } from 'hono'
import type { UpdateMonitorRequest } from '../../protocol/monitor.ts'
import { allowsDocument } from '../corpus/source-policy.ts'
import { transaction } from '../database.ts'
import { EventLog, type MonitorRecord } from './event-log.ts'
import { execute, type ExecutionContext } from './execution.ts'
import { type HttpProblem, problem } from '../http/problem.ts'
import { issue, unprocessable } from '../http/validation.ts'
import { identifier } from '../identifier.ts'
import type { EventStreamRequest, MonitorRequest, SnapshotRequest } from './request.ts'
import { monitorRoutes } from './routes.ts'
import { createSchedule } from './schedule.ts'
import { searchFor } from './search.ts'
import { SeenPassages, textsOf } from './seen.ts'
import { MonitorStore, type StoredMonitor } from './store.ts'
import { refusedField, rescheduled, updatedRequest } from './update.ts'

/** Maximum number of concurrent searches. Low, since searches block the event loop. */
const MAX_SEARCHES = 4
/** Maximum number of concurrent runs. Each also needs a slot of the processor. */
const MAX_RUNS = 4

/** Settings of {@link createMonitors}. */
export interface MonitorsOptions extends Omit<ExecutionContext, 'store' | 'log' | 'seen'> {
  /** Called when the database fails; executions then pause for 5 s. Default: the error is thrown, uncaught. */
  readonly onError?: (error: unknown) => void
}

/** The service's monitors. */
export interface Monitors {
  /** The endpoints under `/v1/monitors`. */
  routes(): Hono
  /** Starts to execute monitors, beginning with overdue ones. */
  start(): void
  /** Every stored event of every monitor, oldest first. */
  records(): readonly MonitorRecord[]
  /** Resolves when no execution is running. */
  settled(): Promise<void>
  /**
   * Starts no more executions, and resolves when the running searches have ended. Runs are aborted, and executed again at the
   * next start. Call it before the corpus is closed.
   */
  close(): Promise<void>
}

/**
 * Creates the monitors (§2.1). Each runs on creation and then at its frequency. A monitor of type `event_stream` reports news in the
 * corpus. A monitor of type `snapshot` repeats a run, and reports which fields of its output have changed. All state is in the database and
 * survives a restart.
 */
export function createMonitors(options: MonitorsOptions): Monitors {
  const { database, clock, corpus, memories, completedRun, onError } = options
  const store = new MonitorStore(database)
  const log = new EventLog(database)
  const seen = new SeenPassages(database)
  const context = { ...options, store, log, seen }
  const common = {
    clock,
    store,
    execute: (id: string, signal: AbortSignal) => execute(id, context, signal),
    onError,
  }
  const searches = createSchedule({ ...common, type: 'event_stream', concurrency: MAX_SEARCHES })
  const runs = createSchedule({ ...common, type: 'snapshot', concurrency: MAX_RUNS })

  async function create(request: MonitorRequest): Promise<string> {
    const id = identifier('monitor')
    if (request.type === 'snapshot') createSnapshot(id, request)
    else await createEventStream(id, request)
    wake(request.type)
    return id
  }

  function createSnapshot(id: string, request: SnapshotRequest): void {
    const { task_run_id } = request.settings
    const run = completedRun(task_run_id)
    if (run === undefined) throw notCompleted(task_run_id)
    const { input, task_spec } = run.input
    const schema = task_spec?.output_schema
    const settings = { task_run_id, query: input, ...(schema !== undefined && { output_schema: schema }) }
    transaction(database, () => {
      store.add(id, { ...request, settings }, clock.now())
      store.keepSnapshot(id, run.output)
    })
  }

  async function createEventStream(id: string, request: EventStreamRequest): Promise<void> {
    const baseline = await currentPassages(request)
    transaction(database, () => {
      store.add(id, request, clock.now())
      if (baseline === undefined) return
      seen.compare(id, baseline, textsOf(corpus)).mark()
      store.baselined(id)
    })
  }

  /**
   * The baseline: passages that exist at creation. The first execution would mistake newer documents for existing ones, so it
   * is taken here. Undefined if the corpus fails; the first execution then reports the error.
   */
  async function currentPassages(request: EventStreamRequest) {
    try {
      await corpus.settled()
      return searchFor(request, corpus).passages
    } catch {
      return undefined
    }
  }

  function trigger({ id, request }: StoredMonitor): void {
    store.trigger(id)
    wake(request.type)
  }

  function cancel({ id, request }: StoredMonitor): void {
    transaction(database, () => {
      store.cancel(id)
      memories.monitorCancelled(request.memory_scope_key, id)
    })
    if (request.type === 'snapshot') runs.cancel(id)
    else searches.cancel(id)
  }

  async function update(monitor: StoredMonitor, changes: UpdateMonitorRequest): Promise<void> {
    const refused = refusedField(monitor.request, changes)
    if (refused !== undefined) throw unprocessable([issue(['body', refused.field], refused.reason)])
    if (changes.settings !== undefined) await corpus.settled()
    transaction(database, () => {
      // Another update or the cancellation may have been faster.
      const current = store.get(monitor.id) ?? monitor
      if (current.status === 'cancelled') throw cancelled(monitor.id)
      const updated = updatedRequest(current.request, changes)
      store.update(monitor.id, updated, rescheduled(current, updated.frequency, clock.now()))
      markAdmitted(current, updated)
    })
    wake(monitor.request.type)
  }

  /** Marks as seen what only the updated sources include. It would be reported as new, although it is as old as the others. */
  function markAdmitted({ id, request, hasBaseline }: StoredMonitor, updated: MonitorRequest): void {
    if (request.type !== 'event_stream' || updated.type !== 'event_stream' || !hasBaseline) return
    const policy = request.settings.advanced_settings?.source_policy
    if (isDeepStrictEqual(policy, updated.settings.advanced_settings?.source_policy)) return
    const admitted = searchFor(updated, corpus).passages.filter((passage) => !allowsDocument(policy, passage))
    seen.compare(id, admitted, textsOf(corpus)).mark()
  }

  function wake(type: MonitorRequest['type']): void {
    if (type === 'snapshot') runs.wake()
    else searches.wake()
  }

  return {
    routes: () => monitorRoutes({ store, log, create, update, cancel, trigger }),
    start() {
      searches.start()
      runs.start()
    },
    records: () => log.records(),
    async settled() {
      await Promise.all([searches.settled(), runs.settled()])
    },
    async close() {
      await Promise.all([searches.close(), runs.close()])
    },
  }
}

function notCompleted(runId: string): HttpProblem {
  const message = `Expected a completed run of this service; ${runId} is unknown, or has not completed`
  return unprocessable([issue(['body', 'settings', 'task_run_id'], message)])
}

function cancelled(id: string): HttpProblem {
  return problem(422, `Monitor ${id} is cancelled and cannot be updated: create a new one`)
}
