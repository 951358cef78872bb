import type { CloseReason, Refusal } from '../../protocol/live.ts'
import { LIVE_PROTOCOL } from '../../protocol/live.ts'
import type { Access } from '../access/access.ts'
import { bytesOf, frameText } from '../feed/frames.ts'
import type { FeedFollower } from '../feed/feed.ts'
import { eventId, withId } from './event-id.ts'
import { Subscription } from './subscription.ts'
import type { NextFrames } from './subscription.ts'

/** How long a client may take to read the end of its stream, in ms. */
const GRACE = 5_000

/** A view that a client may not follow. */
export interface DeniedView {
  readonly address: string
  readonly problem: Refusal
}

/** Settings of a {@link Connection}. */
export interface ConnectionOptions {
  readonly access: Access
  /** The views, in the order in which the client has named them. */
  readonly views: readonly (Subscription | DeniedView)[]
  /** Interval between heartbeats, in ms. */
  readonly heartbeat: number
  /** Whether each frame has an `id` with the positions of all views, for `EventSource`. */
  readonly hasIds: boolean
  /** The age of the oldest entry that one of these views has not processed, in ms; undefined if it is unknown. */
  readonly behind: (views: readonly string[]) => Promise<number | undefined>
  /** Called when the client has taken bytes, with their number. */
  readonly onSent: (bytes: number) => void
  /** Called once, when the connection has ended. */
  readonly onClose: () => void
}

/**
 * One client: its views, each with its position. Frames are made when the client takes them, so a client that does not read has one frame
 * in memory, and no queue.
 */
export class Connection {
  readonly body: ReadableStream<Uint8Array>
  readonly #options: ConnectionOptions
  readonly #subscriptions = new Set<Subscription>()
  /** The subscriptions that may have more, in the order in which they are asked. */
  readonly #ready = new Set<Subscription>()
  /** How to end each subscription. */
  readonly #stops = new Map<Subscription, () => void>()
  /** The first frame. */
  readonly #open: string
  #hasSent = false
  /** Small frames, at most one of each kind and view. */
  readonly #frames: string[] = []
  #isPulling = false
  /** Whether there may be more since {@link Connection.#next} was called. */
  #isAwake = false
  #resume = () => {}
  #isHeartbeatDue = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #closing: CloseReason | undefined
  #isClosed = false
  #unwatch = () => {}
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { access, views, heartbeat } = options
    this.#open = frameText('open', {
      protocol: LIVE_PROTOCOL,
      expires: access.expires,
      heartbeat,
      now: Date.now(),
    })
    this.#frames.push(this.#open)
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: (controller) => this.#pull(controller),
        cancel: () => this.#tearDown(),
      },
      { highWaterMark: 0 },
    )
    for (const each of views) {
      if (each instanceof Subscription) this.#add(each)
      else this.#frames.push(frameText('denied', { view: each.address, problem: each.problem }))
    }
    this.#unwatch = access.onEnd((reason) => this.close(reason))
    this.#startTimer()
  }

  /** Ends the stream with this frame, after the bytes that are already being sent. */
  close(reason: CloseReason): void {
    if (this.#closing !== undefined || this.#isClosed) return
    this.#closing = reason
    if (this.#isPulling) this.#wake()
    else this.#finish()
  }

  /** Ends everything, since the client is gone. */
  abandon(): void {
    if (this.#isClosed) return
    this.#tearDown()
    this.#controller?.close()
  }

  /** Ends one view. The others continue. */
  deny(view: string, problem: Refusal): void {
    for (const each of this.#subscriptions) {
      if (each.view.name !== view) continue
      this.#remove(each)
      this.#frames.push(frameText('denied', { view: each.scope.address, problem }))
    }
    this.#wake()
  }

  #add(subscription: Subscription): void {
    const follower: FeedFollower = {
      onMore: () => {
        this.#ready.add(subscription)
        this.#wake()
      },
      onError: () => this.close('shutdown'),
    }
    this.#subscriptions.add(subscription)
    this.#ready.add(subscription)
    this.#stops.set(subscription, subscription.view.feed.follow(follower))
  }

  #remove(subscription: Subscription): void {
    this.#stops.get(subscription)?.()
    this.#stops.delete(subscription)
    this.#subscriptions.delete(subscription)
    this.#ready.delete(subscription)
  }

  #wake(): void {
    this.#isAwake = true
    this.#resume()
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#isPulling = true
    try {
      while (!this.#isClosed) {
        this.#isAwake = false
        const next = this.#next()
        const frames = next instanceof Promise ? await next : next
        if (this.#isClosed) return
        // Rows that were read while the grant ended are no longer sent.
        if (this.#closing !== undefined) return this.#finish()
        if (frames instanceof Uint8Array) {
          this.#hasSent = true
          this.#options.onSent(frames.byteLength)
          return controller.enqueue(frames)
        }
        if (frames === 'again' || this.#isAwake) continue
        await new Promise<void>((resolve) => {
          this.#resume = resolve
        })
      }
    } catch {
      // The log is closed, or its file fails. A new connection will show whether this lasts.
      this.#closing ??= 'shutdown'
      this.#finish()
    } finally {
      this.#isPulling = false
      this.#resume = () => {}
    }
  }

  /**
   * The next frames for the client; `again` if there may be more; undefined for none at the moment. Returns a promise only if
   * something is read: with many clients, promises would be most of the memory that an event takes.
   */
  #next(): NextFrames | Promise<NextFrames> {
    if (this.#frames.length > 0) return this.#withId(this.#frames.splice(0).join(''))
    if (this.#closing !== undefined) return undefined
    if (this.#isHeartbeatDue) return this.#heartbeat()
    for (const subscription of this.#ready) {
      // Moved to the end of the queue, so that a busy view does not keep the others waiting.
      this.#ready.delete(subscription)
      const next = subscription.next()
      if (next instanceof Promise) {
        return next.then((frames) => this.#taken(subscription, frames) ?? 'again')
      }
      const frames = this.#taken(subscription, next)
      if (frames !== undefined) return frames
    }
    return undefined
  }

  /** The bytes to send to the client for the frames of a subscription. */
  #taken(subscription: Subscription, frames: NextFrames): Uint8Array | undefined {
    if (!this.#subscriptions.has(subscription)) return undefined
    if (frames !== undefined) this.#ready.add(subscription)
    return frames instanceof Uint8Array ? this.#withIdBytes(frames) : undefined
  }

  async #heartbeat(): Promise<Uint8Array> {
    this.#isHeartbeatDue = false
    this.#startTimer()
    const views = [...this.#subscriptions]
    const behind = await this.#options.behind(views.map(({ view }) => view.name))
    const positions = views.map((each) => each.positionFrame())
    return this.#withId(
      positions.join('') +
        frameText('heartbeat', { now: Date.now(), ...(behind !== undefined && { behind }) }),
    )
  }

  #startTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#isHeartbeatDue = true
      this.#wake()
    }, this.#options.heartbeat)
  }

  #withId(text: string): Uint8Array {
    return this.#withIdBytes(bytesOf(text))
  }

  /** Puts an `id` into the last frame: a client that is cut off before its end gets all of the frames again. */
  #withIdBytes(bytes: Uint8Array): Uint8Array {
    if (!this.#options.hasIds) return bytes
    const positions = this.#options.views.map((each) =>
      each instanceof Subscription ? each.position : undefined,
    )
    return withId(bytes, eventId(positions))
  }

  #finish(): void {
    if (this.#isClosed) return
    const reason = this.#closing
    this.#tearDown()
    const controller = this.#controller
    const open = this.#hasSent ? '' : this.#open
    if (reason !== undefined) controller?.enqueue(bytesOf(open + frameText('close', { reason })))
    controller?.close()
    // Without effect once the client has taken all.
    const cut = setTimeout(() => controller?.error(new Error('the client does not read')), GRACE)
    // Only Node has it.
    if (typeof cut === 'object') cut.unref()
  }

  #tearDown(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#unwatch()
    for (const each of this.#subscriptions) this.#remove(each)
    this.#wake()
    this.#options.onClose()
  }
}
