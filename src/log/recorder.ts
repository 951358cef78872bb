import type { ResearchEvent } from '../protocol/event.ts'
import { Gate } from '../protocol/gate.ts'
import type { Fence, LogStore, NewEntry } from './contract.ts'

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

/**
 * Writes upstream streams into a log. What several streams bring meanwhile goes into one transaction, with their positions:
 * so the log has an event if and only if its stream has moved past it.
 */
export class Recorder {
  /** Sources are subscribed to under it: it closes while the log is behind. */
  readonly gate = new Gate()
  readonly #store: LogStore
  readonly #onFailure: (error: unknown) => void
  readonly #streams = new Set<OpenStream>()
  #pending = 0
  #flushing: Promise<void> = Promise.resolve()
  #nextFlush: Promise<void> | undefined
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

  /** Called by a stream that has something to append. */
  added(): void {
    if (this.#failed) return
    this.#pending += 1
    if (this.#pending >= HIGH_WATER_MARK) this.gate.close()
    this.#nextFlush ??= this.#flushNext()
  }

  /** Appends what was added. */
  async flushed(): Promise<void> {
    while (this.#nextFlush !== undefined) await this.#nextFlush
    await this.#flushing
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

  async #flushNext(): Promise<void> {
    const previous = this.#flushing
    // What comes until the previous append has ended goes along.
    await previous
    this.#flushing = this.#nextFlush ?? previous
    this.#nextFlush = undefined
    const moved = [...this.#streams].filter((stream) => stream.hasChanged)
    if (this.#failed || moved.length === 0) return
    const batches = moved.map((stream) => stream.take())
    const count = batches.reduce((sum, { entries }) => sum + entries.length, 0)
    try {
      await this.#store.append(batches)
    } catch (error) {
      this.#failed = true
      this.gate.open()
      return this.#onFailure(error)
    }
    this.#pending -= count
    if (this.#pending <= HIGH_WATER_MARK / 2) this.gate.open()
  }
}

class OpenStream implements RecordedStream {
  readonly fence: Fence
  readonly #recorder: Recorder
  /** The position in the log, once the append that is under way has ended. */
  #saved: string | null
  #position: UpstreamPosition | undefined
  #entries: NewEntry[] = []

  constructor(recorder: Recorder, fence: Fence, position: string | null) {
    this.#recorder = recorder
    this.fence = fence
    this.#saved = position
  }

  get position(): string | undefined {
    return this.#saved ?? undefined
  }

  get hasChanged(): boolean {
    return this.#entries.length > 0
  }

  add(event: ResearchEvent, position?: UpstreamPosition): void {
    this.#entries.push({ event })
    this.#position = position ?? this.#position
    this.#recorder.added()
  }

  /** What is to be appended. */
  take() {
    const expect = this.#saved
    const entries = this.#entries
    const position = this.#position?.text()
    this.#entries = []
    this.#position = undefined
    this.#saved = position ?? expect
    return { fence: this.fence, expect, entries, ...(position !== undefined && { position }) }
  }

  async close(): Promise<void> {
    await this.#recorder.flushed()
    await this.#recorder.release(this)
  }
}
