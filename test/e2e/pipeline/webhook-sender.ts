import type { SchedulerLike } from 'rxjs'
import { signedRequest } from 'rivulet/webhooks'
import { TIME } from './run.ts'

/** How one webhook is delivered. Times are in ms. */
export interface PostScript {
  /** The delay from the event to the first attempt. */
  readonly after: number
  readonly lost: boolean
  /** Delays after the first attempt at which the accepted webhook is repeated. */
  readonly again: readonly number[]
  /** Delays after the first attempt at which the event is sent with another webhook id. */
  readonly withNewId: readonly number[]
  /** What is sent together with the first attempt and must be refused. */
  readonly forgeries: readonly Forgery[]
}

/** A webhook that is signed with another secret, or whose body is not the signed one, or that was signed too long ago. */
export type Forgery = 'secret' | 'body' | 'late'

export const SECRET = 'a secret of the account'
/** Older than a receiver accepts, in s. */
const LATE = 10 * 60

/** Receives a webhook and resolves with the status of its response. */
export type Receiver = (request: Request) => Promise<number | undefined>

/** Sends webhooks until they are accepted. */
export class WebhookSender {
  /** The current receiver; undefined while the process is down. It resolves without a status when its process is killed. */
  receiver: Receiver | undefined
  /** Called when a forgery was answered with 2xx. */
  onForged: (forgery: Forgery) => void = () => {}
  readonly #scheduler: SchedulerLike
  #unsettled = 0
  #sent = 0

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler
  }

  /** Whether every webhook that is not lost was accepted. */
  get idle(): boolean {
    return this.#unsettled === 0
  }

  /** Unix time in ms. */
  readonly clock = (): number => Date.parse(TIME) + this.#scheduler.now()

  /** @param onTaken Called when it was answered with 2xx. */
  post({ after, lost, again, withNewId, forgeries }: PostScript, payload: object, onTaken: () => void): void {
    for (const forgery of forgeries) this.#scheduler.schedule(() => void this.#forge(forgery, payload), after)
    if (lost) return
    for (const [first, ...repeats] of [[0, ...again], ...withNewId.map((later) => [later])]) {
      const id = `msg_${++this.#sent}`
      for (const later of [first ?? 0, ...repeats]) this.#send(id, payload, after + later, 5_000, onTaken)
    }
  }

  #send(id: string, payload: object, delay: number, backoff: number, onTaken: () => void): void {
    this.#unsettled += 1
    this.#scheduler.schedule(() => {
      void this.#attempt(id, payload).then((taken) => {
        this.#unsettled -= 1
        if (taken) onTaken()
        else this.#send(id, payload, backoff, 2 * backoff, onTaken)
      })
    }, delay)
  }

  async #attempt(id: string, payload: object): Promise<boolean> {
    const timestamp = Math.floor(this.clock() / 1_000)
    const request = await signedRequest('http://client.example/', payload, { id, timestamp, secrets: SECRET })
    return this.#isTaken(request)
  }

  /** The id of the forgery is that of a webhook to come, which must not count as a duplicate. */
  async #forge(forgery: Forgery, payload: object): Promise<void> {
    const forged = { ...payload, data: { run_id: 'forged', status: 'failed' } }
    const now = Math.floor(this.clock() / 1_000)
    const request = await signedRequest('http://client.example/', forgery === 'body' ? payload : forged, {
      id: `msg_${this.#sent + 1}`,
      timestamp: forgery === 'late' ? now - LATE : now,
      secrets: forgery === 'secret' ? 'another secret' : SECRET,
    })
    const { url, headers } = request
    const sent =
      forgery === 'body'
        ? new Request(url, { method: 'POST', headers, body: JSON.stringify(forged) })
        : request
    if (await this.#isTaken(sent)) this.onForged(forgery)
  }

  async #isTaken(request: Request): Promise<boolean> {
    const status = await this.receiver?.(request)
    return status !== undefined && status >= 200 && status < 300
  }
}
