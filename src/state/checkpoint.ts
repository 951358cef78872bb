import type { ResearchEvent } from '../protocol/event.ts'
import type { CheckpointState, CheckpointStore, HandledFact } from './checkpoint-store.ts'
import { CheckpointError } from './errors.ts'
import { ProgressLog } from './progress-log.ts'
import type { Advance, Done, Fact } from './progress-log.ts'
import { afterThisTurn } from './turn.ts'

/**
 * The place of a pipeline. `client.watch({ checkpoint })` tells it what comes, `deliver(handler, { checkpoint })` what
 * was handled; it moves a stream's position only past a gap-free run of handled events.
 *
 * Whatever tells copies of events keeps to one rule: after each copy that it told by {@link entered} or
 * {@link delivered} it calls {@link passed} once, with the same event, when its emission has returned or when it was
 * dropped as a duplicate.
 *
 * What was handled is saved in groups: all that a turn of the event loop and the save before it have brought.
 */
export interface Checkpoint {
  /** The cursor behind which a stream goes on; undefined at its beginning. */
  position(stream: string): string | undefined
  /**
   * The facts that the store remembers as handled, read anew at each iteration. Oldest first; a fact whose copies were
   * handled apart may stand there several times, and what they told adds up.
   */
  readonly handledBefore: Iterable<HandledFact>
  /**
   * A subscription begins: streams are read from their positions, and webhooks that are not done are handed out again, so
   * all that nobody has handled comes again. What was received before and is still being handled is noted when it is
   * handled, and comes again nevertheless.
   *
   * Returns what ends the subscription. One at a time: a second one would not know what the first has in flight.
   *
   * @throws {CheckpointError} while another subscription lasts.
   */
  begin(): () => void
  /** Somebody who will receive events begins to listen. Returns what takes that back. See `Progress`. */
  attach(): () => void
  /** Whether anybody listens who will receive events: without, nobody handles what comes. */
  readonly attached: boolean
  /** A copy of a fact came from a stream, in the order of the stream. Called before it is emitted. */
  entered(stream: string, cursor: string | undefined, event: ResearchEvent): void
  /**
   * A webhook stands for these facts; `done` is called when each of them was handled and that is saved. Called before
   * they are emitted. Without any facts `done` is called with the next save.
   */
  delivered(events: readonly ResearchEvent[], done: Done): void
  /**
   * The emission of this copy has returned, or it was dropped as a duplicate. Nobody will handle it who has not received
   * it by now: where nobody has, it was filtered out, and counts as handled. Not so when it
   * broke off, since the pipeline failed: then only what was received has passed.
   */
  passed(event: ResearchEvent, brokeOff?: boolean): void
  /**
   * The event came to a handler, within its emission. See `Progress`.
   *
   * @throws {CheckpointError} for an event that was not told, or whose emission has returned. Nothing is saved any more
   * from then on.
   */
  received(event: Fact): void
  /**
   * The event that was received, the very same object, is handled. Resolves when that is saved. See `Progress`.
   *
   * Rejects with what the store failed with; what could not be saved is saved with the next event.
   */
  handled(event: Fact): Promise<void>
  /** Saves what is not saved yet and gives the store up. Rejects when the save fails; the store is given up anyway. */
  close(): Promise<void>
}

/**
 * Copies that may pass before one is received, until it is believed that the pipeline filters them all out. Before that
 * nothing is saved: with an asynchronous operator ahead of `deliver`, everything seems to be filtered out, until the
 * first event comes too late and tells the mistake.
 */
const BELIEVED = 1_000

/**
 * Opens the checkpoint that a store keeps.
 *
 * Rejects with {@link CheckpointInUseError} where another pipeline holds the store, and with whatever the store cannot be
 * read for.
 *
 * @example
 * const checkpoint = await openCheckpoint(sqliteCheckpointStore('pipeline.db'))
 * const events = client.watch({ monitors: ['monitor_1'], checkpoint })
 * events.pipe(deliver(save, { checkpoint })).subscribe()
 */
export async function openCheckpoint(store: CheckpointStore): Promise<Checkpoint> {
  return new StoredCheckpoint(store, await store.load())
}

class StoredCheckpoint implements Checkpoint {
  readonly handledBefore: Iterable<HandledFact>
  readonly #store: CheckpointStore
  readonly #log: ProgressLog
  /** What a save that failed has left. */
  #unsaved: Advance = { positions: new Map(), handled: [], done: [] }
  /** The save that began last. */
  #current: Promise<void> = Promise.resolve()
  /** The save that will take in what is final now. */
  #next: Promise<void> | undefined
  #subscribed = false
  #attached = 0
  #passed = 0
  #believed = false
  #misuse: unknown
  #closed: Promise<void> | undefined

  constructor(store: CheckpointStore, { positions, handled }: CheckpointState) {
    this.#store = store
    this.#log = new ProgressLog(positions)
    this.handledBefore = handled
  }

  position(stream: string): string | undefined {
    return this.#log.position(stream)
  }

  begin(): () => void {
    if (this.#subscribed) {
      throw new CheckpointError(
        'a checkpoint serves one subscription at a time: give everything to one `watch`, and subscribe to it once',
      )
    }
    this.#subscribed = true
    this.#log.begin()
    return () => {
      this.#subscribed = false
    }
  }

  get attached(): boolean {
    return this.#attached > 0
  }

  attach(): () => void {
    this.#attached += 1
    return () => {
      this.#attached -= 1
    }
  }

  entered(stream: string, cursor: string | undefined, event: ResearchEvent): void {
    this.#log.entered(stream, cursor, event)
  }

  delivered(events: readonly ResearchEvent[], done: Done): void {
    this.#log.delivered(events, done)
    this.#saveSoon()
  }

  passed(event: ResearchEvent, brokeOff = false): void {
    if (brokeOff && !this.#log.isReceived(event)) return
    this.#log.passed(event)
    this.#passed += 1
    this.#believed ||= this.#passed >= BELIEVED
    this.#saveSoon()
  }

  received(event: Fact): void {
    if (this.#closed !== undefined) throw closed()
    try {
      this.#log.received(event)
    } catch (error) {
      this.#misuse ??= error
      throw error
    }
    this.#believed = true
  }

  async handled(event: Fact): Promise<void> {
    if (this.#closed !== undefined) throw closed()
    this.#log.handled(event)
    await this.#save()
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    try {
      await (this.#believed && this.#misuse === undefined ? this.#save() : settled(this.#current))
    } finally {
      await this.#store.close()
    }
  }

  /** For what nobody waits for: a failure comes back with the next event that is handled, or at `close`. */
  #saveSoon(): void {
    if (this.#believed && this.#closed === undefined && this.#log.advanced) this.#save().catch(() => {})
  }

  /** Resolves with the save that takes in what is final now. */
  #save(): Promise<void> {
    this.#next ??= this.#saveNext()
    return this.#next
  }

  async #saveNext(): Promise<void> {
    // What becomes final in this turn of the event loop goes along.
    await afterThisTurn()
    await settled(this.#current)
    this.#current = this.#next ?? this.#current
    this.#next = undefined
    if (this.#misuse !== undefined) throw this.#misuse

    const advance = merge(this.#unsaved, this.#log.take())
    this.#unsaved = advance
    if (advance.positions.size > 0 || advance.handled.length > 0) await this.#store.save(advance)
    this.#unsaved = { positions: new Map(), handled: [], done: [] }
    // A webhook is done only now: before, a crash would have lost both it and the word that it was handled.
    await Promise.all(advance.done.map(async (done) => done()))
  }
}

function merge(older: Advance, newer: Advance): Advance {
  if (older.handled.length === 0 && older.positions.size === 0 && older.done.length === 0) return newer
  return {
    positions: new Map([...older.positions, ...newer.positions]),
    handled: [...older.handled, ...newer.handled],
    done: [...older.done, ...newer.done],
  }
}

async function settled(work: Promise<void>): Promise<void> {
  await work.catch(() => {})
}

function closed(): CheckpointError {
  return new CheckpointError('the checkpoint is closed: close it once the pipeline has ended')
}
