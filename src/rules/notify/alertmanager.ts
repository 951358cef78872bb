import { checkDuration, checkInteger, checkOptions, checkText, checkWait } from '../../protocol/check.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { LogClosedError, LogPositionError } from '../../log/errors.ts'
import { checkLog } from '../../protocol/check-log.ts'
import type { EventLog } from '../../log/event-log/event-log.ts'
import { Job } from '../../log/event-log/job.ts'
import type { LogJob } from '../../log/event-log/job.ts'
import type { LogProcess } from '../../log/process/process.ts'
import { endpointOf } from '../../webhooks/sink/endpoint.ts'
import type { Credentials } from '../../webhooks/sink/endpoint.ts'
import { problemOf } from './alert-entry.ts'
import { readAlerts } from './alert-reader.ts'
import type { Pending } from './alert-reader.ts'
import { Alerts } from './alertmanager-alerts.ts'
import type { Alert } from './alertmanager-alerts.ts'
import { Peer } from './alertmanager-peer.ts'
import type { PeerSettings } from './alertmanager-peer.ts'
import { alertProcess } from './alertmanager-process.ts'
import type { AlertState } from './alertmanager-process.ts'
import { jobOf } from './notifier-job.ts'
import { notifierSettings } from './notifier-options.ts'
import type { NotifierOptions } from './notifier-options.ts'
import { report } from './notify-problem.ts'
import { pause } from './wake.ts'

/** Settings of {@link notifyAlertmanager}. */
export interface AlertmanagerOptions extends NotifierOptions {
  /** Instances, such as `http://127.0.0.1:9093`: all those of a cluster, since each gets every alert. `/api/v2/alerts` is appended. */
  readonly urls: string | readonly string[]
  /** Name of the process and of the consumer in the log. Default `alertmanager`. */
  readonly name?: string
  /** Credentials for all instances. Default: the user and the password of each URL, if any. */
  readonly auth?: Credentials
  /** Interval at which open alerts are sent again, in ms. An instance ends an alert that does not come again within four times this interval. Default 60,000. */
  readonly resend?: number
  /**
   * Minimum time that an alert stays open after an instance accepted it, in ms. Set it above `group_wait` plus `group_interval` of
   * Alertmanager: otherwise a shorter episode is not notified. For a cluster, add its `peer-timeout` for each instance after the first:
   * otherwise several notify it. Default 360,000, for Alertmanager's defaults: 30 s, 5 min and 15 s. It counts on over restarts.
   */
  readonly minOpen?: number
  /** `generatorURL` of all alerts: an http or https URL at which a person finds the rules. Default: none. */
  readonly generatorUrl?: string
}

const OPTIONS = Object.keys({
  urls: true,
  name: true,
  auth: true,
  resend: true,
  minOpen: true,
  generatorUrl: true,
  fetch: true,
  timeout: true,
  onProblem: true,
} satisfies Record<keyof AlertmanagerOptions, true>)

/** How often the process is asked whether it has read the log, in ms, at first and at most. */
const FIRST_LOOK = 5
const LAST_LOOK = 500

/**
 * Sends the alerts of a log to Alertmanager by its API v2. Alerts that fire when it first starts are sent, and earlier episodes are not.
 *
 * A change is sent at once. Open alerts are sent again every `resend`, and alerts that have ended for 15 minutes, so that a restart of an
 * instance loses nothing. Each event is acknowledged once an instance has accepted it and the process has stored when, or the alert was
 * open for `minOpen`: an event that was not acknowledged when the job or its computer stopped is sent at the next start. Instances do not
 * wait for each other. An alert that an instance refuses for its content is a dead letter of the consumer.
 *
 * While it does not run for more than four times `resend`, Alertmanager ends the open alerts, and notifies them again afterwards.
 * Two episodes of an alert within `minOpen` are one for Alertmanager.
 *
 * Rejects, as `done`, if the log fails. A receiver that fails is reported by `onProblem` and tried again.
 *
 * @throws ArgumentError at the call, for an invalid setting.
 */
export function notifyAlertmanager(log: EventLog, options: AlertmanagerOptions): LogJob {
  checkLog(log)
  checkOptions('options', options ?? null, OPTIONS)
  const settings = notifierSettings('alertmanager', options)
  const { urls, auth, resend = 60_000, minOpen = 360_000, generatorUrl } = options
  const list: unknown = typeof urls === 'string' ? [urls] : urls
  if (!Array.isArray(list) || list.length === 0) {
    throw new ArgumentError('urls', 'a URL, or a list of them', Array.isArray(list) ? list : undefined)
  }
  const endpoints = list.map((url: unknown) => endpointOf('urls', url, auth, '/api/v2/alerts'))
  checkInteger('resend', resend, 1)
  checkWait('resend', resend)
  checkDuration('minOpen', minOpen, false, 86_400_000)
  if (generatorUrl !== undefined) {
    checkText('generatorUrl', generatorUrl)
    // Alertmanager would refuse each alert.
    const isUrl = URL.canParse(generatorUrl) && /^https?:$/.test(new URL(generatorUrl).protocol)
    if (!isUrl) throw new ArgumentError('generatorUrl', 'a URL of http or https', generatorUrl)
  }

  const { name, onProblem } = settings
  const alerts = new Alerts(minOpen)
  const peer: PeerSettings = {
    ...settings,
    resend,
    generatorUrl,
    onFailure: (error, attempt) => report(onProblem, { notifier: name, error, attempt }),
  }
  const sender = new Sender(alerts, (onSent) =>
    endpoints.map((endpoint) => new Peer(endpoint, alerts, peer, onSent)),
  )
  const states = log.process(name, alertProcess(minOpen, alerts))
  const reading = { name, types: ['alert.firing', 'alert.resolved'], capacity: 5_000, onProblem } as const
  const reader = readAlerts(log, reading, (pending) => sender.take(pending))
  return jobOf([sender.begin(log, name, states), states, reader])
}

/** Gives alerts to the instances, and acknowledges the alerts that they have accepted. */
class Sender {
  readonly #alerts: Alerts
  readonly #peers: readonly Peer[]
  readonly #stop = new AbortController()
  #timer: NodeJS.Timeout | undefined

  constructor(alerts: Alerts, peersOf: (onSent: () => void) => readonly Peer[]) {
    this.#alerts = alerts
    this.#peers = peersOf(() => this.#advance())
  }

  /** Starts to send once it has the state of the log. */
  begin(log: EventLog, name: string, states: LogProcess<AlertState | null>): LogJob {
    const stopped = Promise.withResolvers<void>()
    const run = async (): Promise<void> => {
      try {
        const position = await this.#restore(log, name, states)
        if (this.#stop.signal.aborted) return
        const parts = [this.#follow(states, position), ...this.#peers.map((each) => each.run())]
        await Promise.race([stopped.promise, ...parts])
      } catch (error) {
        // The log ends its readers when it is closed, and so the job.
        if (!(error instanceof LogClosedError)) throw error
      } finally {
        clearTimeout(this.#timer)
        this.#stop.abort()
        await Promise.all(this.#peers.map((each) => each.stop()))
      }
    }
    return new Job(run(), () => {
      this.#stop.abort()
      stopped.resolve()
    })
  }

  /** Takes an event that is not notified, or not known to be. */
  take(pending: Pending): void {
    if (this.#stop.signal.aborted) return
    const { entry } = pending
    // The reader has no others.
    if (entry.type !== 'alert.firing' && entry.type !== 'alert.resolved') return pending.done()
    const alert = this.#alerts.take(entry)
    this.#alerts.wait(pending, alert)
    this.#changed(alert)
    this.#advance()
  }

  #changed(alert: Alert): void {
    for (const each of this.#peers) each.changed(alert)
  }

  #advance(): void {
    if (this.#stop.signal.aborted) return
    for (const alert of this.#alerts.advance()) this.#changed(alert)
    clearTimeout(this.#timer)
    const { due } = this.#alerts
    if (due !== undefined) this.#timer = setTimeout(() => this.#advance(), Math.ceil(due))
  }

  /**
   * Reads the state of the process, after the events that were not acknowledged: an alert that had ended before it was notified is still
   * opened.
   *
   * @returns The position of the process after these states; undefined if it has none.
   */
  async #restore(
    log: EventLog,
    name: string,
    states: LogProcess<AlertState | null>,
  ): Promise<string | undefined> {
    const cursor = await this.#caughtUp(log, name)
    if (cursor === undefined) return undefined
    let restored: string | undefined
    for (let position = cursor; !this.#stop.signal.aborted;) {
      const page = await log.read(position, { limit: 500, types: ['alert.firing', 'alert.resolved'] })
      for (const entry of page.entries) {
        if (entry.type !== 'alert.firing' && entry.type !== 'alert.resolved') continue
        if (problemOf(entry) === undefined) this.#alerts.take(entry)
      }
      position = page.position
      if (page.isEnd) break
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const reading = states.changes(undefined, { live: false }).subscribe({
      next: ({ key, state, position }) => {
        if (state !== null) this.#alerts.restore(key, state)
        restored = position
      },
      error: reject,
      complete: resolve,
    })
    this.#stop.signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
    reading.unsubscribe()
    return restored
  }

  /** Acknowledges what the process has stored. Rejects if its states cannot be read. */
  #follow(states: LogProcess<AlertState | null>, position: string | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const following = states.changes(position).subscribe({
      next: ({ key, state }) => {
        if (state !== null && this.#alerts.stored(key, state)) this.#advance()
      },
      error: (error) => {
        // More alerts were forgotten meanwhile than the log remembers.
        if (error instanceof LogPositionError) resolve(this.#follow(states, undefined))
        else reject(error)
      },
    })
    this.#stop.signal.addEventListener('abort', () => following.unsubscribe(), { once: true })
    return promise
  }

  /**
   * Waits until the process has read the entries that were in the log at the start: before that, its state has alerts that have ended.
   *
   * @returns The position at which the consumer resumes; undefined when it was stopped.
   */
  async #caughtUp(log: EventLog, name: string): Promise<string | undefined> {
    for (let delay = FIRST_LOOK; !this.#stop.signal.aborted; delay = Math.min(LAST_LOOK, 2 * delay)) {
      const stats = await log.stats()
      const newest = (this.#alerts.newestAtStart ??= stats.newest ?? -Infinity)
      const own = stats.readers.filter((reader) => reader.name === name && reader.owner !== null)
      const consumer = own.find(({ kind }) => kind === 'consumer')
      const oldest = own.find(({ kind }) => kind === 'process')?.oldestUnacknowledged
      const isRead = oldest !== undefined && (oldest === null || oldest > newest)
      if (consumer !== undefined && isRead) return consumer.cursor
      await pause(delay, this.#stop.signal)
    }
    return undefined
  }
}
