import { retryDelay } from '../../protocol/backoff.ts'
import type { EventLog } from '../../log/event-log/event-log.ts'
import { Job } from '../../log/event-log/job.ts'
import type { LogJob } from '../../log/event-log/job.ts'
import { SinkError } from '../../webhooks/sink/sink-error.ts'
import type { AlertEntry } from './alert-entry.ts'
import { AlertGroups } from './alert-groups.ts'
import { labelsHash } from './alert-identity.ts'
import { readAlerts } from './alert-reader.ts'
import type { AlertType, Pending } from './alert-reader.ts'
import type { GroupedSettings } from './grouped-options.ts'
import { jobOf } from './notifier-job.ts'
import { report } from './notify-problem.ts'
import { pause, Wake } from './wake.ts'

/** Maximum number of notifications that are sent at a time. */
const CONCURRENCY = 4

/** The same with those that wait because they were refused. */
const MAX_RUNNING = 100

/** Maximum number of events that are not notified. Reading the log pauses there. */
const CAPACITY = 2_000

/** How long running requests may take when the job is stopped, in ms. */
const GRACE = 1_000

/** How a receiver is notified. */
export interface GroupedPlan {
  readonly settings: GroupedSettings
  readonly types: readonly AlertType[]
  /** Maximum number of events in a notification. */
  readonly maxEvents: number
  /** Whether a failure may pass. */
  readonly isRetryable: (error: unknown) => boolean
  /** Sends one notification. */
  readonly send: (entries: readonly AlertEntry[], stop: AbortSignal) => Promise<void>
}

/** Notifies alerts in groups, each event at least once. */
export function deliverGrouped(log: EventLog, plan: GroupedPlan): LogJob {
  const { name, onProblem } = plan.settings
  const delivery = new GroupedDelivery(plan)
  const reading = { name, types: plan.types, capacity: CAPACITY, onProblem }
  const reader = readAlerts(log, reading, (pending) => delivery.take(pending))
  return jobOf([delivery.job, reader])
}

/** The notifications of one receiver. */
class GroupedDelivery {
  readonly job: LogJob
  readonly #plan: GroupedPlan
  readonly #groups: AlertGroups<Pending>
  readonly #wake = new Wake()
  /** Aborted when no notification may begin or be tried again. */
  readonly #stop = new AbortController()
  /** Running requests are ended. */
  readonly #abort = new AbortController()
  readonly #running = new Set<Promise<void>>()
  /** How many of the running notifications wait because they were refused. */
  #refused = 0

  constructor(plan: GroupedPlan) {
    this.#plan = plan
    const { grouping, limit } = plan.settings
    this.#groups = new AlertGroups({
      wait: grouping?.wait ?? 0,
      interval: grouping?.interval ?? 0,
      maxEvents: grouping === undefined ? 1 : plan.maxEvents,
      maxTogether: plan.maxEvents,
      limit,
    })
    this.job = new Job(this.#run(), () => {
      this.#stop.abort()
      this.#wake.set()
    })
  }

  take(pending: Pending): void {
    if (this.#stop.signal.aborted) return
    const key = this.#keyOf(pending.entry)
    const begin = this.#plan.settings.past === 'ignore' ? this.#unsentBegin(key, pending.entry) : undefined
    if (begin !== undefined) {
      begin.done()
      pending.done()
      return
    }
    this.#groups.add(key, pending, performance.now())
    this.#wake.set()
  }

  /** Withdraws the begin of an alert that has ended before it was sent. */
  #unsentBegin(key: string, { type, data }: AlertEntry): Pending | undefined {
    if (type !== 'alert.resolved') return undefined
    return this.#groups.withdraw(
      key,
      ({ entry }) => entry.type === 'alert.firing' && entry.data.episode === data.episode,
    )
  }

  /** Without grouping, the events of an alert are notified one after the other. */
  #keyOf({ data: { labels } }: AlertEntry): string {
    const { grouping } = this.#plan.settings
    if (grouping === undefined) return labelsHash(labels)
    return JSON.stringify(grouping.by.map((name) => labels[name] ?? null))
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const taken = this.#hasRoom ? this.#groups.take(performance.now()) : undefined
      if (taken !== undefined) {
        const { keys, events } = taken
        const sending = this.#deliver(events).then(() => {
          this.#running.delete(sending)
          this.#groups.sent(keys, performance.now())
          this.#wake.set()
        })
        this.#running.add(sending)
        continue
      }
      const next = this.#groups.next(performance.now())
      await this.#wake.wait(this.#hasRoom ? next - performance.now() : Infinity)
    }
    const timer = setTimeout(() => this.#abort.abort(), GRACE)
    await Promise.all(this.#running)
    clearTimeout(timer)
  }

  /** Sends a notification until it is accepted or given up. */
  async #deliver(events: readonly Pending[]): Promise<void> {
    const { settings, isRetryable, send } = this.#plan
    const { name, onProblem, retryFor, backoff } = settings
    const began = performance.now()
    for (let attempt = 1; !this.#stop.signal.aborted; attempt++) {
      try {
        await send(
          events.map(({ entry }) => entry),
          this.#abort.signal,
        )
        for (const event of events) event.done()
        return
      } catch (error) {
        if (this.#abort.signal.aborted) return
        const problem = error instanceof Error ? error : new Error('a notification failed')
        const mayPass = isRetryable(error)
        // One of them may be the reason.
        if (!mayPass && events.length > 1) return this.#deliverEach(events)
        report(onProblem, { notifier: name, error: problem, attempt: mayPass ? attempt : 0 })
        const delay = retryDelay(error, attempt - 1, backoff)
        if (!mayPass || performance.now() - began + delay > retryFor) {
          for (const event of events) event.refuse(problem)
          return
        }
        await this.#pause(delay, error)
      }
    }
  }

  get #hasRoom(): boolean {
    return this.#running.size - this.#refused < CONCURRENCY && this.#running.size < MAX_RUNNING
  }

  /** Others are sent while a refused notification waits. If the receiver is down, they wait too. */
  async #pause(delay: number, error: unknown): Promise<void> {
    const isRefused = error instanceof SinkError && error.status !== undefined && !error.retryable
    if (isRefused) {
      this.#refused++
      this.#wake.set()
    }
    await pause(delay, this.#stop.signal)
    if (isRefused) this.#refused--
  }

  async #deliverEach(events: readonly Pending[]): Promise<void> {
    for (const event of events) await this.#deliver([event])
  }
}
