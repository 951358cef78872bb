import { BehaviorSubject } from 'rxjs'
import type { ResearchClient, WatchedGroup, WatchedMonitor } from 'rivulet'
import type { EventLog, LogJob } from 'rivulet/log'
import type { WebhookReceiver } from 'rivulet/webhooks'
import type { Host } from './world.ts'

/** A recording within one process. */
export class RunningRecording {
  readonly #host: Host
  readonly #client: ResearchClient
  readonly #log: EventLog
  /** Undefined where it is in another process. */
  readonly #receiver: WebhookReceiver | undefined
  readonly #waiting = new AbortController()
  readonly #allMonitors: readonly WatchedMonitor[]
  readonly #allGroups: readonly WatchedGroup[]
  readonly #monitors: BehaviorSubject<readonly WatchedMonitor[]>
  readonly #groups: BehaviorSubject<readonly WatchedGroup[]>
  #job: LogJob | undefined

  constructor(host: Host, client: ResearchClient, log: EventLog, receiver: WebhookReceiver | undefined) {
    this.#host = host
    this.#client = client
    this.#log = log
    this.#receiver = receiver
    const { service, setup } = host.world
    this.#allMonitors = service.monitors.map(({ id, script: { limit, include_completions } }) => ({
      id,
      limit,
      include_completions,
      pollInterval: setup.pollInterval,
    }))
    this.#allGroups = service.groups.map(({ id, script: { include_input } }) => ({ id, include_input }))
    this.#monitors = new BehaviorSubject(this.#allMonitors)
    this.#groups = new BehaviorSubject(this.#allGroups)
    this.#begin()
  }

  /** Records again after the end of the earlier job. */
  async again(): Promise<void> {
    const job = this.#job
    if (job === undefined) return
    this.#job = undefined
    await job.stop().catch((error: unknown) => this.#host.failed(error))
    if (!this.#host.isEnding && this.#job === undefined) this.#begin()
  }

  /** Removes a monitor and a group from their lists, and adds them again after this many ms. */
  relist(down: number): void {
    if (!this.#host.world.setup.hasLists) return
    this.#monitors.next(this.#allMonitors.slice(1))
    this.#groups.next(this.#allGroups.slice(1))
    this.#host.world.scheduler.schedule(() => {
      this.#monitors.next(this.#allMonitors)
      this.#groups.next(this.#allGroups)
    }, down)
  }

  kill(): void {
    this.#job?.stop().catch(() => {})
  }

  #begin(): void {
    const { service, setup, scheduler } = this.#host.world
    const { hasLists, hasStandby, pause, tick } = setup
    const job = this.#log.record({
      client: this.#client,
      monitors: hasLists ? this.#monitors : this.#monitors.value,
      taskGroups: hasLists ? this.#groups : this.#groups.value,
      ...(service.script.posts.length > 0 && { webhooks: this.#receiver ?? true }),
      tick,
      ...(hasStandby && { wait: this.#waiting.signal }),
    })
    this.#job = job
    job.done.catch((error: unknown) => {
      if (this.#job !== job) return
      this.#job = undefined
      this.#host.failed(error)
      scheduler.schedule(() => {
        if (!this.#host.isEnding && this.#job === undefined) this.#begin()
      }, pause)
    })
  }
}
