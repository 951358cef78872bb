import { backoffDelay } from '../protocol/backoff.ts'
import { LIVE_PROTOCOL } from '../protocol/live.ts'
import type { ViewRequest } from '../protocol/live.ts'
import type { Environment } from './environment.ts'
import { readFrames } from './frames.ts'
import type { Frame } from './frames.ts'
import type { LiveInspection } from './live.ts'
import { LiveError } from './live-error.ts'
import { refusalOf } from './refusal.ts'
import type { Tokens } from './tokens.ts'

/** The part of the client that a connection uses. */
export interface ConnectionOwner {
  /** Whether this tab may connect, asked once its rights are known. If it may not, `viewsChanged` is called as soon as it may. */
  mayConnect(): Promise<boolean>
  /** The views to follow. */
  readonly wanted: readonly FollowedView[]
  /** Takes a frame about a view, or of the connection. Returns whether it is progress. */
  take(frame: Frame): boolean
  /** The connection was opened or lost, or its error has changed. */
  connectionChanged(): void
}

/** A view that a connection follows. */
interface FollowedView {
  readonly address: string
  /** The request to the gateway, with the position that the client has. */
  resume(): ViewRequest
}

/** The longest wait for the first frame, in ms. */
const OPEN_TIMEOUT = 20_000
/** Bounds of `heartbeat`, in ms, whatever a gateway says. */
const MIN_HEARTBEAT = 1_000
const MAX_HEARTBEAT = 120_000
/** Minimum duration of a good connection, in ms. When such a connection ends in order, the next one is made soon. */
const GOOD = 1_000
/**
 * The longest wait after such an end, in ms. A gateway that restarts ends all its connections at once, and tokens that were issued
 * together expire together. It is less than `GRACE`.
 */
const SPREAD = 1_000
/** How long views stay live while an orderly end is followed by the next connection, in ms. */
const GRACE = 2_000
/** How long after a wake a failure is followed by the next attempt within `HURRY_DELAY`, both in ms: its network may take a moment. */
const HURRY = 2_000
const HURRY_DELAY = 250
/** How late a heartbeat may be before a page that has just woken up treats the connection as dead, in ms. */
const LATE = 2_000

/** How long a token that was not sent can be used for a connection, in ms. */
const UNSENT = 5_000

/** Why a connection is ended by the client itself. */
type Restart = 'views' | 'dead'

/** One connection after another to the gateway, while views are wanted. */
export class Connection {
  isOpen = false
  /** Whether it waits for `viewsChanged` or `wake`. */
  isParked = false
  /** Why the last one has ended or could not be made. */
  error: LiveError | undefined
  /** The lag of the gateway in the last `heartbeat`, in ms. */
  behind = 0
  heartbeat = MAX_HEARTBEAT
  /** When the last bytes came, in Unix ms. */
  lastBytes = 0
  readonly #url: string
  readonly #tokens: Tokens
  readonly #owner: ConnectionOwner
  readonly #environment: Environment
  /** Aborts the current connection. */
  #attempt: AbortController | undefined
  /** The reason for which the client itself has ended it. */
  #restart: Restart | undefined
  /** The end of the time in which the last token can be used, if it was not sent, in Unix ms. */
  #unsentUntil = 0
  #isRunning = false
  #endPause = () => {}
  #pausedUntil = 0
  /** When an orderly end has begun, which does not make views stale, and when the page has woken up, in Unix ms. */
  #graceSince = 0
  #wokenAt = 0
  /** The addresses of the views that it has asked for. */
  #carried: string | undefined
  #startedAt = 0
  #failures = 0
  #refusals = 0
  #cancelChange = () => {}

  constructor(url: string, tokens: Tokens, owner: ConnectionOwner, environment: Environment) {
    this.#url = url
    this.#tokens = tokens
    this.#owner = owner
    this.#environment = environment
  }

  /** Whether the gateway refuses the token. */
  get isDenied(): boolean {
    return !this.isOpen && this.#refusals > 1
  }

  /** How long views that were live stay live, in ms. */
  get graceLeft(): number {
    return remaining(this.#graceSince, GRACE, this.#environment.now())
  }

  inspect(): Pick<LiveInspection, 'connection'> {
    if (!this.#isRunning) return {}
    const { isOpen, lastBytes, behind } = this
    const state = isOpen ? 'open' : this.#attempt === undefined ? 'waiting' : 'connecting'
    return { connection: { state, since: this.#startedAt, lastBytes, behind, failures: this.#failures } }
  }

  /** The set of views has changed: they are followed from the next connection on, which is made after `delay` ms. */
  viewsChanged(delay: number): void {
    this.#cancelChange()
    const change = () => {
      this.isParked = false
      if (!this.#isRunning) void this.#run()
      else if (this.#carried !== addressesOf(this.#owner.wanted)) this.#end('views')
    }
    // Timers of a hidden page may be late by a minute.
    if (delay === 0 || this.#environment.isHidden()) change()
    else this.#cancelChange = this.#environment.later(delay, change)
  }

  /** The page runs again, or has a network again. */
  wake(): void {
    const now = this.#environment.now()
    this.#wokenAt = now
    if (this.isParked) this.viewsChanged(0)
    else if (this.isOpen) {
      if (this.#silence(now) > this.heartbeat + LATE) this.#end('dead')
    } else if (this.error?.retryAfter === undefined) this.#endPause()
  }

  /** Performs the actions that are due. */
  tick(): void {
    const now = this.#environment.now()
    if (this.#attempt !== undefined) this.#endIfSilent(this.#attempt, now)
    else if (now >= this.#pausedUntil) this.#endPause()
  }

  /** Drops a connection that can no longer be used, such as one without a network. */
  drop(): void {
    this.#end('dead')
  }

  /** Another connection asks for the views again. They stay as they are meanwhile. */
  renew(): void {
    this.#end('views')
  }

  /** Views that are live stay live for a moment: a connection of this tab continues from the position of another tab's connection. */
  grace(): void {
    this.#graceSince = this.#environment.now()
    this.#owner.connectionChanged()
  }

  /** Ends the connection until `viewsChanged` or `wake`. */
  park(): void {
    this.isParked = true
    this.#cancelChange()
    this.#attempt?.abort(new LiveError('closed', 'Closed'))
    this.#endPause()
  }

  /** Replaces the connection with a new one. If its request is not sent yet, it will ask for the views that are wanted then. */
  #end(restart: Restart): void {
    if (this.#attempt === undefined) return
    if (this.#carried === undefined && this.#owner.wanted.length > 0) return
    this.#restart = restart
    this.#attempt.abort(new LiveError('network', 'Closed'))
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (!this.isParked && this.#owner.wanted.length > 0) {
      const delay = await this.#connectOnce()
      if (delay > 0 && !this.isParked) await this.#pause(delay)
    }
    this.#isRunning = false
  }

  /** Makes a connection and follows it to its end. Returns how long to wait for the next one, in ms. */
  async #connectOnce(): Promise<number> {
    const environment = this.#environment
    const attempt = new AbortController()
    this.#attempt = attempt
    this.#restart = undefined
    this.#startedAt = environment.now()
    this.lastBytes = this.#startedAt
    const endWatch = this.#watch(attempt)
    let isOrderly = false
    let openedAt = Infinity
    let hasProgressed = false
    try {
      const token = await this.#token(attempt.signal)
      if (!(await this.#owner.mayConnect())) {
        this.isParked = true
        this.#unsentUntil = environment.now() + UNSENT
        throw new LiveError('closed', 'Closed')
      }
      const body = await this.#request(token, attempt.signal)
      await readFrames(
        body,
        (frame) => {
          // Frames in the same chunk as the end of the connection are ignored.
          if (attempt.signal.aborted) return
          if (frame.kind === 'open') {
            this.#opened(frame)
            openedAt = environment.now()
          } else if (openedAt === Infinity) {
            throw new LiveError('protocol', `${frame.kind} came before open`)
          } else if (frame.kind === 'close') {
            isOrderly = true
            attempt.abort(new LiveError('network', `Closed: ${frame.reason}`))
          } else {
            if (frame.kind === 'heartbeat') this.behind = frame.behind ?? this.behind
            if (this.#owner.take(frame)) hasProgressed = true
          }
        },
        () => (this.lastBytes = environment.now()),
        attempt.signal,
      )
      isOrderly = true
      this.error = new LiveError('network', 'Closed')
    } catch (error) {
      this.error = asLiveError(error)
    }
    endWatch()
    attempt.abort()
    this.#attempt = undefined
    this.#carried = undefined
    const now = environment.now()
    if (this.#restart === 'views' || this.isParked) this.error = undefined
    if (this.isOpen && (isOrderly || this.#restart === 'views')) this.#graceSince = now
    this.isOpen = false
    const wasGood = now - openedAt >= GOOD
    // If connections are short, the next one follows quickly after progress, but not at once.
    if (hasProgressed) this.#failures = wasGood ? 0 : Math.min(this.#failures, 2)
    const delay = this.#nextDelay(wasGood && isOrderly)
    this.#owner.connectionChanged()
    return delay
  }

  /** How long to wait for the next connection, in ms. */
  #nextDelay(isOrderly: boolean): number {
    if (this.#restart !== undefined) return 0
    const { reason, retryAfter = 0 } = this.error ?? {}
    const isRefused =
      reason === 'unauthenticated' || reason === 'expired' || reason === 'revoked' || reason === 'forbidden'
    // The token may have been too old. A new one is tried at once, but only once.
    if (isRefused && ++this.#refusals === 1) return 0
    const { random, now } = this.#environment
    const delay = isOrderly ? random() * SPREAD : backoffDelay(this.#failures++, {}, random)
    const isHurried = remaining(this.#wokenAt, HURRY, now()) > 0
    // Clients that were refused together must not come back together.
    return 1 + retryAfter + (isHurried ? Math.min(delay, HURRY_DELAY) : delay)
  }

  async #token(signal: AbortSignal): Promise<string> {
    const isUnsent = this.#environment.now() < this.#unsentUntil
    this.#unsentUntil = 0
    return isUnsent ? this.#tokens.last : this.#tokens.take(signal)
  }

  async #request(token: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { wanted } = this.#owner
    this.#carried = addressesOf(wanted)
    const response = await this.#environment.fetch(`${this.#url}/stream`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ views: wanted.map((view) => view.resume()) }),
      signal,
    })
    if (!response.ok) throw await refusalOf(response, this.#environment, signal)
    const type = `${response.headers.get('content-type')}`
    if (response.body === null || !type.startsWith('text/event-stream')) {
      throw new LiveError('protocol', `Received ${type}`)
    }
    return response.body
  }

  #opened({ protocol, heartbeat }: Extract<Frame, { readonly kind: 'open' }>): void {
    if (protocol !== LIVE_PROTOCOL) {
      this.#refusals = 2
      throw new LiveError('protocol', `version ${protocol} of the protocol: reload`)
    }
    this.heartbeat = Math.min(Math.max(heartbeat, MIN_HEARTBEAT), MAX_HEARTBEAT)
    this.isOpen = true
    this.error = undefined
    this.#refusals = 0
    this.#owner.connectionChanged()
  }

  /** Ends the connection when nothing has come for too long, by the time of day, which continues while the machine sleeps. */
  #watch(attempt: AbortController): () => void {
    let cancel = () => {}
    const arm = () => {
      cancel = this.#environment.later(this.#limit / 8, () => {
        this.#endIfSilent(attempt, this.#environment.now())
        if (!attempt.signal.aborted) arm()
      })
    }
    arm()
    return () => cancel()
  }

  get #limit(): number {
    return this.isOpen ? 2 * this.heartbeat : OPEN_TIMEOUT
  }

  #endIfSilent(attempt: AbortController, now: number): void {
    if (this.#silence(now) <= this.#limit) return
    attempt.abort(new LiveError('timeout', `Nothing for ${this.#limit / 1_000} s`))
  }

  /** How long nothing has come, in ms. */
  #silence(now: number): number {
    // The clock was set back.
    if (now < this.lastBytes) this.lastBytes = now
    return now - this.lastBytes
  }

  #pause(delay: number): Promise<void> {
    this.#pausedUntil = this.#environment.now() + delay
    return new Promise((resolve) => {
      const cancel = this.#environment.later(delay, resolve)
      this.#endPause = () => {
        cancel()
        resolve()
      }
    })
  }
}

/** The rest of a time that began at `since`, in ms. 0 if the clock was set back. */
function remaining(since: number, length: number, now: number): number {
  return now < since ? 0 : Math.max(0, since + length - now)
}

function asLiveError(error: unknown): LiveError {
  return error instanceof LiveError ? error : new LiveError('network', 'No connection', { cause: error })
}

function addressesOf(views: readonly FollowedView[]): string {
  return views
    .map(({ address }) => address)
    .toSorted()
    .join(' ')
}
