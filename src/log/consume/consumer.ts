import { Subscription } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { ACKNOWLEDGER, expectAcknowledgements } from '../../protocol/acknowledgement.ts'
import type { Acknowledger, Failure } from '../../protocol/acknowledgement.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import { gateOf } from '../../protocol/gate.ts'
import type { Gate } from '../../protocol/gate.ts'
import type { AckWindow } from './ack-window.ts'
import { ConsumerCursor } from './consumer-cursor.ts'
import type { ConsumerSettings, EntryOf } from './consumer-options.ts'
import type { Entry, LogStore, Page, Position } from '../store/contract.ts'
import { deadLetterError } from './dead-letter-error.ts'
import type { Effects } from './effects.ts'
import { LogClosedError, LogGapError, StalledConsumerError } from '../errors.ts'

/**
 * Maximum number of entries that are read at once. Parsing them blocks the event loop, and with it the handlers in flight: with 1,000,
 * handlers of 1 ms were slower by a tenth.
 */
const PAGE = 100

/** Reading pauses while the entries that are out are longer than this as JSON, in characters. */
const MAX_OUT_LENGTH = 16 * 1024 * 1024

/** How often a reader that never comes to the end of the log looks for dead letters to hand out again, in ms. */
const REDELIVERY_INTERVAL = 40

/** Dead letters that are handed out at once. */
const REDELIVERY_PAGE = 100

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
  readonly #cursor: ConsumerCursor<EntryOf<Type>>
  #window: AckWindow | undefined
  /** The number of the last mark of a dead letter that was handed out again. */
  #redelivery = 0
  /** When there was none after it, by `performance.now`. */
  #lookedAt = -Infinity
  /** Ends the wait for the gate or for acknowledgements. */
  #wake = () => {}
  #stallTimer = Subscription.EMPTY
  readonly #running: Promise<void>
  #runEnded = false
  #finished: Promise<void> | undefined
  #end = () => {}

  constructor(
    store: LogStore,
    name: string,
    settings: ConsumerSettings<Type>,
    subscriber: Subscriber<EntryOf<Type>>,
    after: Promise<void> | undefined,
    effects?: Effects<EntryOf<Type>>,
  ) {
    this.#store = store
    this.#name = `consumer:${name}`
    this.#settings = settings
    this.#subscriber = subscriber
    this.#gate = gateOf(subscriber)
    this.#cursor = new ConsumerCursor(store, this.#name, effects, {
      // A dead letter may have kept as many acknowledged entries as there may be.
      onSaved: () => this.#wake(),
      onFailure: (error) => this.#fail(error),
    })
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
    if (this.#window?.acknowledge(position) === true) this.#cursor.saveSoon()
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
    this.#cursor.checkSaved()
  }

  async #run(after: Promise<void> | undefined): Promise<void> {
    const store = this.#store
    const { types, startAt, wait } = this.#settings
    const { signal } = this.#stop
    await after
    if (signal.aborted) return
    const claim = { ...(wait !== undefined && { wait: AbortSignal.any([wait, signal]) }) }
    const window = await this.#cursor.begin(claim, startAt, signal)
    if (window === undefined) return
    this.#window = window
    let position = window.cursor
    while (await this.#canRead(window)) {
      if (performance.now() - this.#lookedAt >= REDELIVERY_INTERVAL) {
        if (!(await this.#redeliver(window))) return
        continue
      }
      const { until } = window
      const page = await store.read(position, { limit: Math.min(PAGE, this.#free(window)), types, until })
      if (page.gap !== undefined && !isGapWanted(types)) throw new LogGapError(this.#name, page.gap)
      if (!(await this.#emit(page, window))) return
      position = page.position
      if (page.isEnd) window.caughtUp()
      if (page.isEnd && page.entries.length === 0 && until === undefined) {
        await store.wait(position, signal, { reader: this.#name, after: this.#redelivery })
        this.#lookedAt = -Infinity
      }
    }
  }

  /** Emits dead letters that are to be handed out again. Returns false where the subscription ended within it. */
  async #redeliver(window: AckWindow): Promise<boolean> {
    const limit = Math.min(REDELIVERY_PAGE, this.#free(window))
    const { letters, last } = await this.#store.deadLetters.redeliveries(this.#name, this.#redelivery, limit)
    for (const { entry, attempts, mark } of letters) {
      if (this.#gate?.closed === true && !(await this.#gateOpens())) return false
      if (this.#stop.signal.aborted) return false
      // One that is not wanted any more stays where it is.
      if (this.#isWantedAgain(entry) && window.addAgain(entry.position, { mark, attempts })) this.#next(entry)
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
      else if (window.add(entry.position, lengths?.[index], gap && entry)) this.#next(entry)
    }
    window.skipTo(position)
    if (window.cursor !== this.#cursor.saved) this.#cursor.saveSoon()
    return !this.#stop.signal.aborted
  }

  /** As `#isWanted`, of a dead letter. A gap is not filtered out, unless its type is left out. */
  #isWantedAgain(entry: Entry): entry is EntryOf<Type> {
    return this.#isWanted(entry, entry.type === 'log.gap' && isGapWanted(this.#settings.types))
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
    await this.#cursor.end()
    this.#end()
  }
}

/** Whether entries of this type are among those that the handler is written for. */
function isGapWanted(types: readonly string[] | undefined): boolean {
  return types === undefined || types.includes('log.gap')
}
