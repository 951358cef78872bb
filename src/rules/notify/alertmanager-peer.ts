import { retryDelay } from '../../protocol/backoff.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { Endpoint } from '../../webhooks/sink/endpoint.ts'
import { post } from '../../webhooks/sink/post.ts'
import type { PostSettings } from '../../webhooks/sink/post.ts'
import { SinkError } from '../../webhooks/sink/sink-error.ts'
import type { Alert, Alerts } from './alertmanager-alerts.ts'
import { pause, Wake } from './wake.ts'

/** Maximum number of alerts in a request. */
const MAX_ALERTS = 500

/** Maximum length of a request, in characters of JSON. */
const MAX_LENGTH = 1024 * 1024

/** How long changes are gathered, in ms, so that simultaneous changes are one request. */
const GATHERED = 50

/** How long an open alert lives at a receiver after it is no longer sent, as a multiple of `resend`: as in Prometheus. */
const LIFE = 4

/** Names that every version of Alertmanager takes. Later ones than 0.26 also take others. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Statuses with which Alertmanager refuses the content of a request, instead of the request. */
const REFUSED = new Set([400, 413, 422])

/** Settings of all {@link Peer}s. */
export interface PeerSettings extends PostSettings {
  /** ms. */
  readonly resend: number
  readonly generatorUrl: string | undefined
  /** Called when an attempt failed, with its number, and with 0 for an alert that is refused. */
  readonly onFailure: (error: Error, attempt: number) => void
}

/** An alert as JSON. */
interface Item {
  readonly alert: Alert
  readonly isOpen: boolean
  readonly json: string
}

/** Sends all alerts to one Alertmanager, at its own pace: changes at once, and all of them every `resend`. */
export class Peer {
  readonly #endpoint: Endpoint
  readonly #alerts: Alerts
  readonly #settings: PeerSettings
  readonly #onSent: () => void
  readonly #stop = new AbortController()
  readonly #wake = new Wake()
  readonly #changed = new Set<string>()
  /** Alerts that it refused, since then unchanged. */
  readonly #refused = new WeakSet<Alert>()
  #running: Promise<void> | undefined
  /** Time of the next resend by `performance.now()`, since the computer's clock may be set. */
  #nextResend = 0

  /** @param onSent Called when alerts were accepted or refused. */
  constructor(endpoint: Endpoint, alerts: Alerts, settings: PeerSettings, onSent: () => void) {
    this.#endpoint = endpoint
    this.#alerts = alerts
    this.#settings = settings
    this.#onSent = onSent
  }

  /** Resolves when it is stopped. */
  run(): Promise<void> {
    return (this.#running ??= this.#run())
  }

  /** An alert has changed. */
  changed(alert: Alert): void {
    this.#refused.delete(alert)
    this.#changed.add(alert.key)
    this.#wake.set()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#wake.set()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    const { resend, onFailure } = this.#settings
    for (let failures = 0; !signal.aborted;) {
      if (performance.now() >= this.#nextResend) this.#sendAllAgain()
      if (this.#changed.size === 0) {
        await this.#wake.wait(this.#nextResend - performance.now())
        // More changes come with the first one.
        if (this.#changed.size > 0) await pause(GATHERED, signal)
        continue
      }
      const batch = this.#nextBatch()
      const failure = await this.#send(batch)
      if (failure === undefined) {
        failures = 0
        continue
      }
      if (signal.aborted) return
      // Behind the others, since it may be the reason.
      for (const { alert } of batch) this.#changed.add(alert.key)
      failures++
      onFailure(failure, failures)
      const delay = retryDelay(failure, failures - 1)
      // Open alerts would end during a longer pause.
      await pause(Math.min(delay, resend), signal)
    }
  }

  #sendAllAgain(): void {
    this.#alerts.forget()
    for (const key of this.#alerts.keys()) this.#changed.add(key)
    this.#nextResend = performance.now() + this.#settings.resend
  }

  /**
   * Takes alerts for one request. An alert with a name that not every version accepts is sent alone, so that the others are not refused
   * with it.
   */
  #nextBatch(): readonly Item[] {
    const batch: Item[] = []
    let length = 0
    for (const key of this.#changed) {
      const alert = this.#alerts.get(key)
      if (alert === undefined || this.#refused.has(alert)) {
        this.#changed.delete(key)
        continue
      }
      const isAlone = !isPlain(alert)
      if (isAlone && batch.length > 0) continue
      const item = this.#itemOf(alert)
      if (batch.length > 0 && length + item.json.length > MAX_LENGTH) break
      this.#changed.delete(key)
      batch.push(item)
      length += item.json.length
      if (isAlone || batch.length === MAX_ALERTS) break
    }
    return batch
  }

  /** Sends a batch. If it is refused, sends its alerts one by one. */
  async #send(batch: readonly Item[]): Promise<SinkError | undefined> {
    const [first] = batch
    if (first === undefined) return undefined
    const body = `[${batch.map(({ json }) => json).join(',')}]`
    const headers = { 'content-type': 'application/json' }
    try {
      await post(this.#endpoint, { body, headers }, this.#settings, this.#stop.signal)
    } catch (error) {
      if (!(error instanceof SinkError)) throw error
      if (error.status === undefined || !REFUSED.has(error.status)) return error
      if (batch.length > 1) return this.#sendEach(batch)
      this.#refused.add(first.alert)
      this.#alerts.refused(first.alert, error)
      this.#settings.onFailure(error, 0)
      this.#onSent()
      return undefined
    }
    for (const { alert, isOpen } of batch) this.#alerts.accepted(alert, isOpen)
    this.#onSent()
    return undefined
  }

  async #sendEach(batch: readonly Item[]): Promise<SinkError | undefined> {
    for (const item of batch) {
      const failure = await this.#send([item])
      if (failure !== undefined) return failure
    }
    return undefined
  }

  #itemOf(alert: Alert): Item {
    const { labels, annotations, startsAt } = alert
    const end = this.#alerts.endOf(alert)
    // It refuses an alert that ends before it starts, and keeps the earlier one if it ends as it starts.
    const endsAt = end === undefined ? Date.now() + LIFE * this.#settings.resend : Math.max(end, startsAt + 1)
    const { generatorUrl } = this.#settings
    const wire = {
      labels: wellFormed(labels),
      annotations: wellFormed(annotations),
      startsAt: rfc3339(startsAt),
      endsAt: rfc3339(endsAt),
      ...(generatorUrl !== undefined && { generatorURL: generatorUrl }),
    }
    return { alert, isOpen: end === undefined, json: JSON.stringify(wire) }
  }
}

/** Whether every version of Alertmanager takes it. */
function isPlain({ labels, annotations }: Alert): boolean {
  const names = Object.keys(labels).concat(Object.keys(annotations))
  // An empty value counts as a missing label, and an alert without labels is refused.
  return names.every((name) => NAME.test(name)) && Object.values(labels).some((value) => value !== '')
}

/** Lone surrogates are not UTF-8. */
function wellFormed(texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text.toWellFormed()]))
}
