import { BehaviorSubject } from 'rxjs'
import type { EventLog, LogJob, ResearchClient, WatchedGroup, WatchedMonitor } from 'rivulet'
import type { Host } from './world.ts'

/** A recording within one process. */
export class RunningRecording {
  readonly #host: Host
  readonly #client: ResearchClient
  readonly #log: EventLog
  readonly #waiting = new AbortController()
  readonly #monitors: BehaviorSubject<readonly WatchedMonitor[]>
  readonly #groups: BehaviorSubject<readonly WatchedGroup[]>
  #job: LogJob | undefined

  constructor(host: Host, client: ResearchClient, log: EventLog) {
    this.#host = host
    this.#client = client
    this.#log = log
    const { service, setup } = host.world
    this.#monitors = new BehaviorSubject<readonly WatchedMonitor[]>(
      service.monitors.map(({ id, script: { limit, include_completions } }) => ({
        id,
        limit,
        include_completions,
        pollInterval: setup.pollInterval,
      })),
    )
    this.#groups = new BehaviorSubject<readonly WatchedGroup[]>(
      service.groups.map(({ id, script: { include_input } }) => ({ id, include_input })),
    )
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
    const [monitors, groups] = [this.#monitors.value, this.#groups.value]
    this.#monitors.next(monitors.slice(1))
    this.#groups.next(groups.slice(1))
    this.#host.world.scheduler.schedule(() => {
      this.#monitors.next(monitors)
      this.#groups.next(groups)
    }, down)
  }

  kill(): void {
    this.#job?.stop().catch(() => {})
  }

  #begin(): void {
    const { setup, scheduler } = this.#host.world
    const { hasLists, hasStandby, pause, tick } = setup
    const job = this.#client.record({
      monitors: hasLists ? this.#monitors : this.#monitors.value,
      taskGroups: hasLists ? this.#groups : this.#groups.value,
      log: this.#log,
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
