import { asyncScheduler, interval, Subscription } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import { checkInteger } from '../protocol/check.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { CheckpointState, CheckpointStore, HandledFact } from './checkpoint-store.ts'
import { CheckpointError } from './errors.ts'
import { MAX_HANDLED, MOST_HANDLED } from './handled-facts.ts'
import { isEmpty, noAdvance, ProgressLog } from './progress-log.ts'
import type { Advance, Done, Fact, Place } from './progress-log.ts'
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
  /** The error for a {@link position} that cannot be read: it says where it stands, and what to do. Nothing is changed. */
  unreadable(stream: string): Error
  /**
   * The facts that were handled, as far as the store remembers them, and what is not saved yet. Read anew at each
   * iteration. Oldest first; a fact may stand there several times, and what its copies told adds up.
   *
   * Iterating throws a {@link CheckpointError} once the checkpoint is closed.
   */
  readonly handledBefore: Iterable<HandledFact>
  /** How many handled facts the store remembers, at the most. */
  readonly maxHandled: number
  /**
   * A subscription begins: streams are read from their positions, and webhooks that are not done are handed out again, so
   * all that nobody has handled comes again. What was received before and is still being handled is noted when it is
   * handled, and comes again nevertheless.
   *
   * Returns what ends the subscription. One at a time: a second one would not know what the first has in flight.
   *
   * @param scheduler Tells when what passed unreceived is believed to be filtered out; see {@link passed}. Default
   * `asyncScheduler`.
   * @throws {CheckpointError} while another subscription lasts, and once the checkpoint is closed.
   */
  begin(scheduler?: SchedulerLike): () => void
  /** Somebody who will receive events begins to listen. Returns what takes that back. See `Progress`. */
  attach(): () => void
  /** Whether anybody listens who will receive events: without, nobody handles what comes. */
  readonly attached: boolean
  /** A copy of a fact came from a stream, in the order of the stream. Called before it is emitted. */
  entered(stream: string, cursor: string | Place | undefined, event: ResearchEvent): void
  /**
   * A webhook stands for these facts; `done` is called when each of them was handled and that is saved. Called before
   * they are emitted. Without any facts `done` is called with the next save.
   */
  delivered(events: readonly ResearchEvent[], done: Done): void
  /**
   * The emission of this copy has returned, or it was dropped as a duplicate. Nobody will handle it who has not received
   * it by now: where nobody has, it was filtered out, and counts as handled. Not so when it
   * broke off, since the pipeline failed: then only what was received has passed.
   *
   * Until the first event is received, an operator may be holding back all of them. So what passed before counts as handled
   * only once an event is received, or after ten minutes of the same subscription.
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
 * Whether what passed unreceived was filtered out. With an asynchronous operator ahead of `deliver` everything seems to
 * be, until the first event comes too late and tells the mistake.
 */
type Trust =
  /** Nothing was received yet. What passed is doubted for a while before it is believed. */
  | { readonly is: 'untrusted' }
  /** Something was received within its emission, so whatever passes unreceived was filtered out. */
  | { readonly is: 'trusted' }
  /** Something came too late. Positions may have moved past what was not handled, and nothing is saved any more. */
  | { readonly is: 'misused'; readonly error: unknown }

/**
 * For how long at the least what passed unreceived is doubted while there is no trust, in ms; at the most twice as long. An
 * operator that holds events back for less than this is found out before anything is lost by it.
 */
const DOUBT = 10 * 60_000

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
  checkInteger('maxHandled', store.maxHandled ?? MAX_HANDLED, 0, MOST_HANDLED)
  return new StoredCheckpoint(store, await store.load())
}

class StoredCheckpoint implements Checkpoint {
  readonly handledBefore: Iterable<HandledFact> = { [Symbol.iterator]: () => this.#handled() }
  readonly #store: CheckpointStore
  readonly #stored: Iterable<HandledFact>
  /** Where each stream stands without doubt, for as long as there is no trust. */
  readonly #positions: Map<string, string>
  #log: ProgressLog
  #trust: Trust = { is: 'untrusted' }
  /** The regular looks at what was doubted for long enough. */
  #looks = Subscription.EMPTY
  /** What had passed when it was looked at last, and is doubted still. */
  #doubted = noAdvance()
  /** What the next save will save beside what the log has. */
  #unsaved = noAdvance()
  /** What is being saved. */
  #saving = noAdvance()
  /** The save that began last. */
  #current: Promise<void> = Promise.resolve()
  /** The save that will take in what is final now. */
  #next: Promise<void> | undefined
  #subscribed = false
  #attached = 0
  #closed: Promise<void> | undefined

  constructor(store: CheckpointStore, { positions, handled }: CheckpointState) {
    this.#store = store
    this.#stored = handled
    this.#positions = new Map(positions)
    this.#log = new ProgressLog(positions)
  }

  get maxHandled(): number {
    return this.#store.maxHandled ?? MAX_HANDLED
  }

  position(stream: string): string | undefined {
    return this.#log.position(stream)
  }

  unreadable(stream: string): Error {
    return this.#store.unreadable?.(stream) ?? unreadable(stream)
  }

  begin(scheduler: SchedulerLike = asyncScheduler): () => void {
    if (this.#closed !== undefined) throw closed()
    if (this.#subscribed) {
      throw new CheckpointError(
        'a checkpoint serves one subscription at a time: give everything to one `watch`, and subscribe to it once',
      )
    }
    this.#subscribed = true
    if (this.#trust.is === 'untrusted') this.#doubtAnew(scheduler)
    else this.#log.begin()
    return () => {
      this.#subscribed = false
      // What an operator holds back may outlast the subscription.
      this.#looks.unsubscribe()
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

  entered(stream: string, cursor: string | Place | undefined, event: ResearchEvent): void {
    this.#log.entered(stream, cursor, event)
  }

  delivered(events: readonly ResearchEvent[], done: Done): void {
    this.#log.delivered(events, done)
    this.#saveSoon()
  }

  passed(event: ResearchEvent, brokeOff = false): void {
    if (brokeOff && !this.#log.isReceived(event)) return
    this.#log.passed(event)
    this.#saveSoon()
  }

  received(event: Fact): void {
    if (this.#closed !== undefined) throw closed()
    try {
      this.#log.received(event)
    } catch (error) {
      if (this.#trust.is !== 'misused') this.#decide({ is: 'misused', error })
      throw error
    }
    if (this.#trust.is === 'untrusted') this.#decide({ is: 'trusted' })
  }

  handled(event: Fact): Promise<void> {
    // Not `async`: many events wait for one save, and each of them would have promises of its own for it.
    try {
      if (this.#closed !== undefined) throw closed()
      this.#log.handled(event)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#save()
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#looks.unsubscribe()
    try {
      await (this.#trust.is === 'misused' ? settled(this.#current) : this.#save())
    } finally {
      await this.#store.close()
    }
  }

  *#handled(): Generator<HandledFact, void, undefined> {
    if (this.#closed !== undefined) throw closed()
    const unsaved = [this.#saving.handled, this.#unsaved.handled, this.#log.newlyHandled]
    for (const facts of [this.#stored, ...unsaved]) yield* facts
  }

  /** All that is doubted comes again. */
  #doubtAnew(scheduler: SchedulerLike): void {
    this.#log = new ProgressLog(this.#positions)
    this.#doubted = noAdvance()
    this.#looks = interval(DOUBT, scheduler).subscribe(() => this.#look())
  }

  /** Nothing was received since the last look. */
  #look(): void {
    for (const [stream, position] of this.#doubted.positions) this.#positions.set(stream, position)
    this.#believe()
    this.#doubted = this.#log.take()
    if (!isEmpty(this.#unsaved)) this.#saveUnattended()
  }

  #believe(): void {
    this.#unsaved = merge(this.#unsaved, this.#doubted)
    this.#doubted = noAdvance()
  }

  #decide(trust: Trust): void {
    this.#trust = trust
    this.#looks.unsubscribe()
    if (trust.is === 'trusted') this.#believe()
  }

  #saveSoon(): void {
    // A save that is to come takes it in.
    if (this.#next !== undefined || this.#trust.is !== 'trusted' || this.#closed !== undefined) return
    if (this.#log.advanced) this.#saveUnattended()
  }

  /** For what nobody waits for: a failure comes back with the next event that is handled, or at `close`. */
  #saveUnattended(): void {
    this.#save().catch(() => {})
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
    if (this.#trust.is === 'misused') throw this.#trust.error

    const advance = this.#trust.is === 'trusted' ? merge(this.#unsaved, this.#log.take()) : this.#unsaved
    this.#unsaved = noAdvance()
    this.#saving = advance
    try {
      if (advance.positions.size > 0 || advance.handled.length > 0) await this.#store.save(advance)
    } catch (error) {
      const { handled, ...rest } = merge(advance, this.#unsaved)
      // However long the store fails: it would not remember more either.
      this.#unsaved = { ...rest, handled: handled.slice(Math.max(0, handled.length - this.maxHandled)) }
      throw error
    } finally {
      this.#saving = noAdvance()
    }
    // A webhook is done only now: before, a crash would have lost both it and the word that it was handled.
    await Promise.all(advance.done.map(async (done) => done()))
  }
}

function merge(older: Advance, newer: Advance): Advance {
  if (isEmpty(older)) return newer
  if (isEmpty(newer)) return older
  return {
    positions: new Map([...older.positions, ...newer.positions]),
    handled: [...older.handled, ...newer.handled],
    done: [...older.done, ...newer.done],
  }
}

async function settled(work: Promise<void>): Promise<void> {
  await work.catch(() => {})
}

function unreadable(stream: string): CheckpointError {
  return new CheckpointError(
    `the position of the stream ${JSON.stringify(stream)} in the checkpoint's store cannot be read: put it right, or ` +
      'delete it to have the stream begin anew. It was left as it is',
  )
}

function closed(): CheckpointError {
  return new CheckpointError('the checkpoint is closed: close it once the pipeline has ended')
}
