import { LogPositionError } from '../../log/errors.ts'
import { macrotask } from '../../protocol/macrotask.ts'
import type { Position } from '../../log/store/contract.ts'
import type { ViewRows } from './view-rows.ts'
import { Segment } from './segment.ts'

/** Maximum number of changes in a segment, and about its length in characters, so that a client that does not read holds little memory. */
const MAX_CHANGES = 500
const MAX_LENGTH = 64 * 1024

/** The number of segments that are kept, and their length with their frames. */
const MAX_SEGMENTS = 1_000
const MAX_KEPT = 4 * 1024 * 1024

/** A reader of a feed that is notified of changes. */
export interface FeedFollower {
  /** Called when there may be more after its position. */
  onMore(): void
  /** The feed has ended with this error. */
  onError(error: unknown): void
}

/**
 * The changes of a view for all of its followers. New changes are read once, as segments that continue each other; the last ones
 * are kept. A follower at another position reads the store, up to the latest segment.
 */
export class Feed {
  readonly #view: ViewRows
  readonly #onForget: () => void
  readonly #followers = new Set<FeedFollower>()
  /** The segments in memory, by the position at which they begin. */
  readonly #kept = new Map<Position, Segment>()
  readonly #reads = new Map<Position, Promise<Segment | undefined>>()
  /** The end of the latest segment; undefined while there are no followers. */
  #head: Position | undefined
  #stop: AbortController | undefined
  /** The read that is under way, and one that begins after it. */
  #running: Promise<Position> | undefined
  #next: Promise<Position> | undefined

  /** @param onForget Called when the view's data in memory is no longer valid. */
  constructor(view: ViewRows, onForget: () => void) {
    this.#view = view
    this.#onForget = onForget
  }

  /** Follows until the returned function is called. */
  follow(follower: FeedFollower): () => void {
    this.#followers.add(follower)
    if (this.#stop === undefined) {
      const stop = new AbortController()
      this.#stop = stop
      this.#run(stop.signal).catch((error: unknown) => {
        if (stop.signal.aborted) return
        this.#end(stop)
        for (const each of this.#followers) each.onError(error)
      })
    }
    return () => {
      this.#followers.delete(follower)
      if (this.#followers.size === 0 && this.#stop !== undefined) this.#end(this.#stop)
    }
  }

  /** The segment after a position, if it is in memory. */
  peek(position: Position): Segment | undefined {
    return this.#kept.get(position)
  }

  /** Whether a position is known to be the end of the latest segment. */
  isLatest(position: Position): boolean {
    return position === this.#head
  }

  /**
   * The segment after a position; undefined if there is none yet, and followers are called then. Rejects with a
   * `LogPositionError`.
   */
  async read(position: Position): Promise<Segment | undefined> {
    const head = this.#head ?? (await this.latest())
    if (position === head) return undefined
    const known = this.#kept.get(position) ?? this.#reads.get(position)
    if (known !== undefined) return known
    const reading = this.#readUpTo(position, head).finally(() => this.#reads.delete(position))
    this.#reads.set(position, reading)
    return reading
  }

  /**
   * Reads up to the end, and resolves with the position of the end. Everything that the process has committed before this call is before
   * it.
   */
  latest(): Promise<Position> {
    // Checked first, since the next read begins some microtasks after the one before has ended.
    if (this.#next !== undefined) return this.#next
    if (this.#running === undefined) return this.#begin()
    this.#next = this.#running.then(
      () => this.#begin(),
      () => this.#begin(),
    )
    return this.#next
  }

  /** One read of the store, which several may share. */
  #begin(): Promise<Position> {
    this.#next = undefined
    const running = this.#readToEnd().finally(() => {
      if (this.#running === running) this.#running = undefined
      // All followers have gone meanwhile. Followers that come later do not read from this position.
      if (this.#followers.size === 0) this.#reset()
    })
    this.#running = running
    return running
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { states, reader } = this.#view
    while (!signal.aborted) {
      const head = await this.latest()
      signal.throwIfAborted()
      // Connections write their frames before the next segment, so a busy gateway has larger segments, not more of them.
      await macrotask()
      await states.wait(reader, head, signal).catch((error: unknown) => {
        if (!(error instanceof LogPositionError)) throw error
      })
    }
  }

  async #readToEnd(): Promise<Position> {
    const { states, reader } = this.#view
    let head: Position = this.#head ?? (await states.end(reader))
    this.#head = head
    for (;;) {
      try {
        const page = await states.changes(reader, head, { limit: MAX_CHANGES, maxLength: MAX_LENGTH })
        if (page.position !== head) {
          this.#keep(head, new Segment(this.#view, page.position, page.changes))
          head = page.position
          this.#head = head
          this.#notify()
        }
        if (page.isEnd) return head
      } catch (error) {
        if (!(error instanceof LogPositionError)) throw error
        // Each follower notices on its own.
        this.#forget()
        head = await states.end(reader)
        this.#head = head
        this.#notify()
        return head
      }
    }
  }

  /** Reads from a position that is not in memory up to the latest segment, where the follower joins the others. */
  async #readUpTo(position: Position, until: Position): Promise<Segment | undefined> {
    const { states, reader } = this.#view
    let head: Position = until
    for (;;) {
      const options = { limit: MAX_CHANGES, maxLength: MAX_LENGTH, until: head }
      const page = await states.changes(reader, position, options).catch((error: unknown) => {
        // The view was built again, and the latest segment is not of that yet.
        if (error instanceof LogPositionError && error.position !== position) return undefined
        throw error
      })
      if (page !== undefined && page.position !== position) {
        const segment = new Segment(this.#view, page.position, page.changes)
        this.#keep(position, segment)
        return segment
      }
      // It is at the latest segment, or beyond it.
      head = await this.latest()
      if (position === head) return undefined
    }
  }

  #notify(): void {
    for (const each of this.#followers) each.onMore()
  }

  #keep(from: Position, segment: Segment): void {
    this.#kept.set(from, segment)
    // Summed up each time, since a segment grows when its frames are encoded.
    let length = 0
    for (const each of this.#kept.values()) length += each.length
    for (const [oldest, each] of this.#kept) {
      if ((length <= MAX_KEPT && this.#kept.size <= MAX_SEGMENTS) || each === segment) return
      this.#kept.delete(oldest)
      length -= each.length
    }
  }

  #forget(): void {
    this.#kept.clear()
    this.#onForget()
  }

  #end(stop: AbortController): void {
    stop.abort()
    if (this.#stop !== stop) return
    this.#stop = undefined
    this.#reset()
  }

  #reset(): void {
    this.#head = undefined
    this.#forget()
  }
}
