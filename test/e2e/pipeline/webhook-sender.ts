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
}

const SECRET = 'a secret of the account'

/** Receives a webhook and resolves with the status of its response. */
export type Receiver = (request: Request) => Promise<number>

/** Sends webhooks until they are accepted. */
export class WebhookSender {
  /** The current receiver; undefined while the process is down. */
  receiver: Receiver | undefined
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
  post({ after, lost, again, withNewId }: PostScript, payload: unknown, onTaken: () => void): void {
    if (lost) return
    for (const [first, ...repeats] of [[0, ...again], ...withNewId.map((later) => [later])]) {
      const id = `msg_${++this.#sent}`
      for (const later of [first ?? 0, ...repeats]) this.#send(id, payload, after + later, 5_000, onTaken)
    }
  }

  #send(id: string, payload: unknown, delay: number, backoff: number, onTaken: () => void): void {
    this.#unsettled += 1
    this.#scheduler.schedule(() => {
      void this.#attempt(id, payload).then((taken) => {
        this.#unsettled -= 1
        if (taken) onTaken()
        else this.#send(id, payload, backoff, 2 * backoff, onTaken)
      })
    }, delay)
  }

  async #attempt(id: string, payload: unknown): Promise<boolean> {
    const timestamp = Math.floor(this.clock() / 1_000)
    const request = await signedRequest('http://client.example/', payload, { id, timestamp, secrets: SECRET })
    const status = await this.receiver?.(request)
    return status !== undefined && status >= 200 && status < 300
  }
}
