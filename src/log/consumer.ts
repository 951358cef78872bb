import { asyncScheduler, Subscription } from 'rxjs'
import type { SchedulerLike, Subscriber } from 'rxjs'
import { ACKNOWLEDGER, expectAcknowledgements } from '../protocol/acknowledgement.ts'
import type { Acknowledger, Failure } from '../protocol/acknowledgement.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import {
  checkDuration,
  checkInteger,
  checkList,
  checkOneOf,
  checkOptions,
  checkText,
} from '../protocol/check.ts'
import { isObject } from '../protocol/event.ts'
import type { ResearchEvent, ResearchEventType } from '../protocol/event.ts'
import { gateOf } from '../protocol/gate.ts'
import type { Gate } from '../protocol/gate.ts'
import { AckWindow } from './ack-window.ts'
import type { Entry, Fence, LogStore, Page, Position, ReaderState, StartAt } from './contract.ts'
import { deadLetterError } from './dead-letter-error.ts'
import { LogClosedError, LogGapError, StalledConsumerError } from './errors.ts'

/** Entries of these types. */
export type EntryOf<Type extends ResearchEventType> = Entry<Extract<ResearchEvent, { readonly type: Type }>>

/** Settings of a consumer. */
export interface ConsumerOptions<Type extends ResearchEventType = ResearchEventType> {
  /** Only entries of these types. Evaluated while reading, so a changed list holds from the cursor on. Default: all. */
  readonly types?: readonly Type[]
  /** Only entries for which this returns true. Evaluated as `types` is. */
  readonly where?: (entry: EntryOf<Type>) => boolean
  /** Where a consumer with a new name begins. A known one resumes at its cursor. Default `start`. */
  readonly startAt?: StartAt
  /** `first` skips more complete duplicates. Default `all`. */
  readonly revisions?: 'all' | 'first'
  /**
   * Maximum number of entries that are not acknowledged. Reading pauses there, and while such entries have more than 16 Mi
   * characters of JSON. 1 to 5,000, since twice as many acknowledged positions must fit into one commit; default 1,000.
   */
  readonly maxUnacknowledged?: number
  /**
   * How long reading may pause for an entry that an operator holds or has dropped, in ms, until the consumer errors with a
   * {@link StalledConsumerError}. Default 60,000.
   */
  readonly stallTimeout?: number
  /** Waits for a name that another open log holds, until this signal is aborted. Default: that is an error. */
  readonly wait?: AbortSignal
  /** For `stallTimeout`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

const OPTIONS = Object.keys({
  types: true,
  where: true,
  startAt: true,
  revisions: true,
  maxUnacknowledged: true,
  stallTimeout: true,
  wait: true,
  scheduler: true,
} satisfies Record<keyof ConsumerOptions, true>)

type Optional = 'types' | 'where' | 'wait'
/** {@link ConsumerOptions} with their defaults. */
export type ConsumerSettings<Type extends ResearchEventType> = Required<
  Omit<ConsumerOptions<Type>, Optional>
> &
  Pick<ConsumerOptions<Type>, Optional>

/** Maximum number of entries that are read at once. */
const PAGE = 500

/** Reading pauses while the entries that are out are longer than this as JSON, in characters. */
const MAX_OUT_LENGTH = 16 * 1024 * 1024

/** How often a reader that never comes to the end of the log looks for dead letters to hand out again, in ms. */
const REDELIVERY_INTERVAL = 25

/** Dead letters that are handed out at once. */
const REDELIVERY_PAGE = 100

/** The settings with their defaults. Throws an ArgumentError for an invalid one. */
export function consumerSettings<Type extends ResearchEventType>(
  name: string,
  options: ConsumerOptions<Type>,
): ConsumerSettings<Type> {
  checkText('name', name)
  checkOptions('options', options, OPTIONS)
  const settings = {
    startAt: 'start',
    revisions: 'all',
    maxUnacknowledged: 1_000,
    stallTimeout: 60_000,
    scheduler: asyncScheduler,
    ...options,
  } as const
  const { types, where, startAt, revisions, maxUnacknowledged, stallTimeout } = settings
  if (types !== undefined) {
    checkList('types', types)
    for (const type of types) checkText('types', type)
  }
  if (where !== undefined && typeof where !== 'function')
    throw new ArgumentError('where', 'a function', where)
  checkStart('startAt', startAt)
  checkOneOf('revisions', revisions, ['all', 'first'])
  checkInteger('maxUnacknowledged', maxUnacknowledged, 1, 5_000)
  checkDuration('stallTimeout', stallTimeout)
  return settings
}

/** Throws an ArgumentError for anything but a {@link StartAt}. */
export function checkStart(argument: string, start: unknown): void {
  const isTime = isObject(start) && Number.isFinite(start['time'])
  if (!isTime && start !== 'start' && start !== 'end') {
    throw new ArgumentError(argument, '"start", "end" or { time: Unix ms }', start)
  }
}

/**
 * One subscription to a consumer: it claims the name, reads, emits under the gate of its subscriber, and saves what is
 * acknowledged. Unsubscribing ends the reading; what was received may still be acknowledged.
 */
export class ConsumerSubscription<
  Type extends ResearchEventType = ResearchEventType,
> implements Acknowledger {
  /** Resolves when the subscription has ended, what was acknowledged is saved and the name is released. Never rejects. */
  readonly ended: Promise<void>
  readonly #store: LogStore
  readonly #name: string
  readonly #settings: ConsumerSettings<Type>
  readonly #subscriber: Subscriber<EntryOf<Type>>
  readonly #gate: Gate | undefined
  readonly #stop = new AbortController()
  #window: AckWindow | undefined
  #fence: Fence | undefined
  /** The cursor in the store. */
  #saved: Position | undefined
  /** The number of the last mark of a dead letter that was handed out again. */
  #redelivery = 0
  /** When there was none after it, by `performance.now`. */
  #lookedAt = -Infinity
  #saving: Promise<void> = Promise.resolve()
  #nextSave: Promise<void> | undefined
  /** Ends the wait for the gate or for acknowledgements. */
  #wake = () => {}
  #stallTimer = Subscription.EMPTY
  readonly #running: Promise<void>
  #runEnded = false
  /** Why the last save failed. */
  #saveFailure: { readonly error: unknown } | undefined
  #finished: Promise<void> | undefined
  #end = () => {}

  constructor(
    store: LogStore,
    name: string,
    settings: ConsumerSettings<Type>,
    subscriber: Subscriber<EntryOf<Type>>,
    after: Promise<void> | undefined,
  ) {
    this.#store = store
    this.#name = `consumer:${name}`
    this.#settings = settings
    this.#subscriber = subscriber
    this.#gate = gateOf(subscriber)
    this.ended = new Promise((resolve) => (this.#end = resolve))
    if (this.#gate !== undefined) expectAcknowledgements(this.#gate)
    const unlisten = this.#gate?.onChange(() => this.#wake())
    subscriber.add(() => {
      unlisten?.()
      this.#stopReading()
    })
    this.#running = this.#run(after).catch((error: unknown) => this.#fail(error))
    void this.#running.then(() => {
      this.#runEnded = true
      this.#finishIfIdle()
    })
  }

  /** Whether it reads no more. What was received may still be acknowledged. */
  get isStopped(): boolean {
    return this.#stop.signal.aborted
  }

  received(position: Position): void {
    this.#window?.received(position)
  }

  acknowledge(position: Position): void {
    if (this.#window?.acknowledge(position) === true) this.#saveSoon()
    this.#wake()
    this.#finishIfIdle()
  }

  deadLetter(position: Position, { error, attempts }: Failure): void {
    this.#window?.deadLetter(position, deadLetterError(error), attempts)
  }

  release(position: Position): void {
    this.#window?.release(position)
    // The entry may stand in the way of the others from now on.
    this.#wake()
    this.#finishIfIdle()
  }

  /** Completes the subscription, saves what is acknowledged and releases the name. Rejects where it could not be saved. */
  async finish(): Promise<void> {
    this.#stopReading()
    this.#subscriber.complete()
    await (this.#finished ??= this.#finish())
    if (this.#saveFailure !== undefined) throw this.#saveFailure.error
  }

  async #run(after: Promise<void> | undefined): Promise<void> {
    const store = this.#store
    const { types, startAt, wait } = this.#settings
    const { signal } = this.#stop
    await after
    if (signal.aborted) return
    this.#fence = await store.claim(this.#name, {
      ...(wait !== undefined && { wait: AbortSignal.any([wait, signal]) }),
    })
    if (signal.aborted) return
    let state = await store.reader(this.#name)
    if (state === undefined) {
      state = await this.#begin(this.#fence, startAt)
    }
    this.#saved = state.cursor
    const window = new AckWindow(state)
    this.#window = window
    let position = state.cursor
    while (await this.#canRead(window)) {
      if (performance.now() - this.#lookedAt >= REDELIVERY_INTERVAL) {
        if (!(await this.#redeliver(window))) return
        continue
      }
      const page = await store.read(position, { limit: Math.min(PAGE, this.#free(window)), types })
      if (page.gap !== undefined && !isGapWanted(types)) throw new LogGapError(this.#name, page.gap)
      if (!(await this.#emit(page, window))) return
      position = page.position
      if (page.isEnd) window.caughtUp()
      if (page.isEnd && page.entries.length === 0) {
        await store.wait(position, signal, { reader: this.#name, after: this.#redelivery })
        this.#lookedAt = -Infinity
      }
    }
  }

  /** Creates the reader. */
  async #begin(fence: Fence, startAt: StartAt): Promise<ReaderState> {
    const store = this.#store
    const state = { cursor: await store.positionAt(startAt), acknowledged: [] }
    await store.commit(fence, { expect: null, ...state })
    if (startAt === 'end') return state
    // Entries may have been deleted before the reader was there to keep them. From now on it keeps them.
    const cursor = await store.positionAt(startAt)
    if (cursor === state.cursor) return state
    await store.commit(fence, { expect: state.cursor, cursor, acknowledged: [] })
    return { cursor, acknowledged: [] }
  }

  /** Emits dead letters that are to be handed out again. Returns false where the subscription ended within it. */
  async #redeliver(window: AckWindow): Promise<boolean> {
    const limit = Math.min(REDELIVERY_PAGE, this.#free(window))
    const { letters, last } = await this.#store.deadLetters.redeliveries(this.#name, this.#redelivery, limit)
    for (const { entry, attempts } of letters) {
      if (this.#gate?.closed === true && !(await this.#gateOpens())) return false
      if (this.#stop.signal.aborted) return false
      // One that is not wanted any more stays where it is.
      if (this.#isWanted(entry) && window.addAgain(entry.position, attempts)) this.#next(entry)
    }
    this.#redelivery = last
    if (letters.length === 0) this.#lookedAt = performance.now()
    return !this.#stop.signal.aborted
  }

  #next(entry: EntryOf<Type>): void {
    this.#subscriber.next({ ...entry, [ACKNOWLEDGER]: this })
  }

  /** Emits a page. Returns false where the subscription ended within it. */
  async #emit({ entries, lengths, position, gap }: Page, window: AckWindow): Promise<boolean> {
    for (const [index, entry] of entries.entries()) {
      if (this.#gate?.closed === true && !(await this.#gateOpens())) return false
      if (this.#stop.signal.aborted) return false
      if (!this.#isWanted(entry, gap !== undefined)) window.skipTo(entry.position)
      else if (window.add(entry.position, lengths?.[index])) this.#next(entry)
    }
    window.skipTo(position)
    if (window.cursor !== this.#saved) this.#saveSoon()
    return !this.#stop.signal.aborted
  }

  #isWanted(entry: Entry, isGap = false): entry is EntryOf<Type> {
    // A gap is never filtered out, since nothing else reports what was missed.
    if (isGap) return true
    const { types, where, revisions } = this.#settings
    if (revisions === 'first' && entry.revision > 1) return false
    const wanted: readonly string[] | undefined = types
    if (wanted !== undefined && !wanted.includes(entry.type)) return false
    return where === undefined || where(entry as EntryOf<Type>)
  }

  /** Waits until the gate is open and fewer entries than the maximum are out. False once the subscription has ended. */
  async #canRead(window: AckWindow): Promise<boolean> {
    while (!this.#stop.signal.aborted) {
      const isFull = this.#free(window) <= 0
      if (!isFull && this.#gate?.closed !== true) return true
      if (isFull) this.#watchStall(window)
      await this.#change()
    }
    return false
  }

  /** How many entries may be emitted. Behind one that is not acknowledged, as many acknowledged ones may be again. */
  #free({ unacknowledged, size, length }: AckWindow): number {
    const { maxUnacknowledged } = this.#settings
    if (length >= MAX_OUT_LENGTH) return 0
    return Math.min(maxUnacknowledged - unacknowledged, 2 * maxUnacknowledged - size)
  }

  async #gateOpens(): Promise<boolean> {
    while (this.#gate?.closed === true && !this.#stop.signal.aborted) await this.#change()
    return !this.#stop.signal.aborted
  }

  #change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve))
  }

  /** Errors if the same entry still blocks the cursor after `stallTimeout` and is not being handled. */
  #watchStall(window: AckWindow): void {
    const first = window.stalled
    if (first === undefined || !this.#stallTimer.closed) return
    const { scheduler, stallTimeout } = this.#settings
    this.#stallTimer = scheduler.schedule(() => {
      this.#stallTimer = Subscription.EMPTY
      if (window.stalled === first) this.#reportStall(window.cursor, first)
      else this.#wake()
    }, stallTimeout)
  }

  #reportStall(cursor: Position, stalled: Position): void {
    const { types, maxUnacknowledged } = this.#settings
    this.#store.read(cursor, { limit: 2 * maxUnacknowledged, types }).then(
      ({ entries }) => {
        const entry = entries.find(({ position }) => position === stalled)
        this.#fail(new StalledConsumerError(this.#name, stalled, entry))
      },
      (error: unknown) => this.#fail(error),
    )
  }

  #saveSoon(): void {
    this.#nextSave ??= this.#saveNext()
  }

  async #saveNext(): Promise<void> {
    const previous = this.#saving
    // What is acknowledged until the previous save has ended goes along.
    await previous
    this.#saving = this.#nextSave ?? previous
    this.#nextSave = undefined
    const { expect, fence, window } = { expect: this.#saved, fence: this.#fence, window: this.#window }
    if (expect === undefined || fence === undefined || window === undefined) return
    try {
      const commit = window.take()
      await this.#store.commit(fence, { expect, ...commit })
      this.#saved = commit.cursor
      if (window.hasMore) this.#saveSoon()
    } catch (error) {
      // What it could not save comes again.
      this.#fence = undefined
      this.#saveFailure ??= { error }
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    const isEnding = this.#stop.signal.aborted
    const isExpected = error === this.#stop.signal.reason || error instanceof LogClosedError
    if (!isEnding || !isExpected) this.#subscriber.error(error)
    this.#stopReading()
  }

  #stopReading(): void {
    this.#stallTimer.unsubscribe()
    this.#stop.abort()
    this.#wake()
    this.#finishIfIdle()
  }

  /** What was received may be acknowledged after the end of the reading. */
  #finishIfIdle(): void {
    const isIdle = this.#runEnded && this.#window?.isBeingHandled !== true
    if (this.#stop.signal.aborted && isIdle) this.#finished ??= this.#finish()
  }

  async #finish(): Promise<void> {
    await this.#running
    while (this.#nextSave !== undefined) await this.#nextSave
    await this.#saving
    const fence = this.#fence
    this.#fence = undefined
    // It is released with the log otherwise.
    if (fence !== undefined) await this.#store.release(fence).catch(() => {})
    this.#end()
  }
}

/** Whether entries of this type are among those that the handler is written for. */
function isGapWanted(types: readonly string[] | undefined): boolean {
  return types === undefined || types.includes('log.gap')
}
