import type { ResearchEvent } from '../protocol/event.ts'
import { Gate } from '../protocol/gate.ts'
import { MAX_APPEND_ENTRIES } from './contract.ts'
import type { Fence, LogStore, NewEntry, StreamAppend } from './contract.ts'
import { LogValueError } from './errors.ts'

/** Number of entries to be appended at which sources pause. They resume at half of it. */
const HIGH_WATER_MARK = 1_000

/** The position of an upstream stream at one moment. It becomes text only when it is saved. */
interface UpstreamPosition {
  text(): string
}

/** An upstream stream that is recorded, under its claim. */
export interface RecordedStream {
  /** Where the stream resumes; undefined at its beginning. */
  readonly position: string | undefined
  /**
   * Appends an event soon, and moves the stream to the position after it. Without a position it stays. Ignored once the
   * recorder has failed.
   */
  add(event: ResearchEvent, position?: UpstreamPosition): void
  /** Appends what was added, and releases the stream. */
  close(): Promise<void>
}

/** An event that is to be appended. */
interface PendingEntry extends NewEntry {
  readonly stream: OpenStream
  readonly position: UpstreamPosition | undefined
}

/**
 * Writes upstream streams into a log. Events that arrive during an append go into the next one, together with the positions of
 * their streams: so the log has an event if and only if its stream has moved past it.
 */
export class Recorder {
  /** Sources are subscribed to under it: it closes while the log is behind. */
  readonly gate = new Gate()
  readonly #store: LogStore
  readonly #onFailure: (error: unknown) => void
  readonly #streams = new Set<OpenStream>()
  #pending: PendingEntry[] = []
  #flush: Promise<void> | undefined
  #failed = false

  /** @param onFailure Called once, when the log has refused an append. Nothing is recorded any more. */
  constructor(store: LogStore, onFailure: (error: unknown) => void) {
    this.#store = store
    this.#onFailure = onFailure
  }

  /** Claims a stream. Rejects with a `LogInUseError` while another open log records it. */
  async open(name: string): Promise<RecordedStream> {
    const fence = await this.#store.claim(`stream:${name}`)
    const [position = null] = await this.#store.streamPositions([fence.name])
    const stream = new OpenStream(this, fence, position)
    this.#streams.add(stream)
    return stream
  }

  /** Appends an entry soon. */
  add(entry: PendingEntry): void {
    if (this.#failed) return
    this.#pending.push(entry)
    if (this.#pending.length >= HIGH_WATER_MARK) this.gate.close()
    this.#flush ??= this.#flushAll()
  }

  /** Resolves when everything that was added is appended, or the recorder has failed. */
  async flushed(): Promise<void> {
    while (this.#flush !== undefined) await this.#flush
  }

  /** Releases a stream. */
  async release(stream: OpenStream): Promise<void> {
    if (!this.#streams.delete(stream)) return
    // The store gives it up when it is closed.
    await this.#store.release(stream.fence).catch(() => {})
  }

  /** Appends what was added, and releases every stream. */
  async close(): Promise<void> {
    await this.flushed()
    await Promise.all(Array.from(this.#streams, (stream) => this.release(stream)))
  }

  async #flushAll(): Promise<void> {
    // The rest of the chunk goes along.
    await Promise.resolve()
    try {
      while (this.#pending.length > 0) {
        const appended = await this.#append(MAX_APPEND_ENTRIES)
        this.#pending = this.#pending.slice(appended)
        if (this.#pending.length <= HIGH_WATER_MARK / 2) this.gate.open()
      }
    } catch (error) {
      this.#failed = true
      this.#pending = []
      this.gate.open()
      this.#onFailure(error)
    }
    this.#flush = undefined
  }

  /** Appends the first entries, so many at the most. Returns their number. */
  async #append(limit: number): Promise<number> {
    const batch = this.#pending.slice(0, limit)
    const byStream = Map.groupBy(batch, ({ stream }) => stream)
    const moves = Array.from(byStream, ([stream, entries]) => ({ stream, append: stream.appendOf(entries) }))
    try {
      await this.#store.append(moves.map(({ append }) => append))
    } catch (error) {
      // Large events fill an append before there are as many.
      if (error instanceof LogValueError && batch.length > 1) return this.#append(Math.ceil(batch.length / 2))
      throw error
    }
    for (const { stream, append } of moves) stream.saved = append.position ?? stream.saved
    return batch.length
  }
}

class OpenStream implements RecordedStream {
  readonly fence: Fence
  /** The position in the log; null at the stream's beginning. */
  saved: string | null
  readonly #recorder: Recorder

  constructor(recorder: Recorder, fence: Fence, saved: string | null) {
    this.#recorder = recorder
    this.fence = fence
    this.saved = saved
  }

  get position(): string | undefined {
    return this.saved ?? undefined
  }

  add(event: ResearchEvent, position?: UpstreamPosition): void {
    this.#recorder.add({ event, stream: this, position })
  }

  appendOf(entries: readonly PendingEntry[]): StreamAppend {
    const position = entries.findLast((entry) => entry.position !== undefined)?.position?.text()
    const added = entries.map(({ event }) => ({ event }))
    return {
      fence: this.fence,
      expect: this.saved,
      entries: added,
      ...(position !== undefined && { position }),
    }
  }

  async close(): Promise<void> {
    await this.#recorder.flushed()
    await this.#recorder.release(this)
  }
}
