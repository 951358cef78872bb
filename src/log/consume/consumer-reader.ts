import { Subscription } from 'rxjs'
import { ACKNOWLEDGER, awaitAcknowledgements } from '../../protocol/acknowledgement.ts'
import type { Acknowledger, Failure } from '../../protocol/acknowledgement.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import type { Gate } from '../../protocol/gate.ts'
import type { AckWindow } from './ack-window.ts'
import { ConsumerCursor } from './consumer-cursor.ts'
import type { ConsumerSettings, EntryOf } from './consumer-options.ts'
import type { Entry, LogStore, Page, Position } from '../store/contract.ts'
import { deadLetterError } from './dead-letter-error.ts'
import type { EffectCursor } from './effects.ts'
import { LogClosedError, LogGapError, StalledConsumerError } from '../errors.ts'
import type { InFlightLimit, Permit } from './in-flight-limit.ts'

/**
 * Maximum number of entries that are read at once. Parsing them blocks the event loop, and with it the handlers in flight: with 1,000,
 * handlers of 1 ms were slower by a tenth.
 */
export const PAGE = 100

/** How often a reader that never comes to the end of the log looks for dead letters to hand out again, in ms. */
const REDELIVERY_INTERVAL = 40

/** Dead letters that are handed out at once. */
const REDELIVERY_PAGE = 100

/** Dependencies and settings of a {@link ConsumerReader}. */
export interface ReaderPlan<Type extends ResearchEventType> {
  readonly store: LogStore
  /** Its name in the store. */
  readonly name: string
  /** The consumer, in errors. */
  readonly consumer: string
  /** The partition that it reads; undefined for all. */
  readonly partition: number | undefined
  /** Called once the name is claimed. If it resolves with false or rejects, the reader does not begin. */
  readonly isWanted?: () => Promise<boolean>
  readonly settings: ConsumerSettings<Type>
  /** In-flight limit that all readers of the consumer share. */
  readonly limit: InFlightLimit<ConsumerReader<Type>>
  /** The subscriber's gate. */
  readonly gate: Gate | undefined
  /** Emits an entry. */
  readonly next: (entry: EntryOf<Type>) => void
  readonly fail: (error: unknown) => void
  /** Resolves when an earlier reader of the same name has ended. */
  readonly after: Promise<void> | undefined
  readonly effects: EffectCursor | undefined
}

/**
 * A reader of a consumer: it claims the name, reads, emits under the gate of the subscriber, and saves what is acknowledged.
 * {@link stop} ends the reading; what was received may still be acknowledged.
 */
export class ConsumerReader<Type extends ResearchEventType = ResearchEventType> implements Acknowledger {
  /** Resolves when the reader has ended, its acknowledgements are saved and its name is released. Never rejects. */
  readonly ended: Promise<void>
  readonly #plan: ReaderPlan<Type>
  readonly #stop = new AbortController()
  readonly #cursor: ConsumerCursor
  #window: AckWindow | undefined
  /** The last redelivery number that this reader has seen. */
  #redelivery = 0
  /** When the log last had no further redelivery, by `performance.now`. */
  #lookedAt = -Infinity
  /** Ends the wait for the gate, for acknowledgements or for a permit. */
  #wake = () => {}
  #stallTimer = Subscription.EMPTY
  /** Whether the reader waits until all entries in flight are acknowledged, before it ends. */
  #isDraining = false
  readonly #running: Promise<void>
  #runEnded = false
  #finished: Promise<void> | undefined
  #end = () => {}

  constructor(plan: ReaderPlan<Type>) {
    const { store, name, partition, effects, after, isWanted } = plan
    this.#plan = plan
    this.#cursor = new ConsumerCursor(store, name, effects, {
      partition,
      cursors: () => plan.limit.size,
      isWanted,
      // A dead letter may have kept as many acknowledged entries as there may be.
      onSaved: () => this.#wake(),
      onFailure: (error) => this.#fail(error),
    })
    this.ended = new Promise((resolve) => (this.#end = resolve))
    plan.limit.add(this)
    this.#running = this.#run(after).catch((error: unknown) => this.#fail(error))
    void this.#running.then(() => {
      this.#runEnded = true
      this.#finishIfIdle()
    })
  }

  get window(): AckWindow | undefined {
    return this.#window
  }

  /** Whether it has stopped reading. Entries in flight may still be acknowledged. */
  get isStopped(): boolean {
    return this.#stop.signal.aborted
  }

  received(position: Position): void {
    this.#window?.received(position)
  }

  acknowledge(position: Position): void {
    if (this.#window?.acknowledge(position) === true) this.#cursor.saveSoon()
    this.#changed()
  }

  handedOn(position: Position): void {
    if (this.#window?.handedOn(position) === true) this.#cursor.saveSoon()
    this.#changed()
  }

  /** Whether the entry is a dead letter that is handed out again. */
  isRedelivered(position: Position): boolean {
    return this.#window?.redelivery(position) !== undefined
  }

  deadLetter(position: Position, { error, attempts }: Failure): void {
    this.#window?.deadLetter(position, deadLetterError(error), attempts)
  }

  release(position: Position): void {
    this.#window?.release(position)
    // From now on, this entry may block the others.
    this.#changed()
  }

  /** The gate was opened or closed. */
  gateChanged(): void {
    this.#wake()
  }

  /** Stops reading, and ends once no handler has one of its entries. */
  stop(): void {
    this.#isDraining = false
    this.#stopReading()
  }

  /**
   * Stops reading, and ends once all entries in flight are acknowledged: another reader of the same name begins then. An entry that
   * an operator has dropped is given up after `stallTimeout`, and the other reader emits it again.
   */
  drain(): void {
    if (this.isStopped) return
    this.#isDraining = true
    this.#stopReading()
  }

  /** Stops, saves the acknowledgements and releases the name. Rejects if they could not be saved. */
  async finish(): Promise<void> {
    this.stop()
    await (this.#finished ??= this.#finish())
    this.#cursor.checkSaved()
  }

  async #run(after: Promise<void> | undefined): Promise<void> {
    const { store, settings, partition, name, consumer } = this.#plan
    const { types, startAt, wait } = settings
    const { signal } = this.#stop
    await after
    if (signal.aborted) return
    const claim = { ...(wait !== undefined && { wait: AbortSignal.any([wait, signal]) }) }
    const window = await this.#cursor.begin(claim, startAt, signal)
    if (window === undefined) return
    this.#window = window
    let position = window.cursor
    for (;;) {
      const permit = await this.#permit(window)
      if (permit === undefined) return
      const { count: limit, release } = permit
      let isEnd = false
      try {
        if (performance.now() - this.#lookedAt >= REDELIVERY_INTERVAL) {
          if (!(await this.#redeliver(window, limit))) return
          continue
        }
        const { until } = window
        const page = await store.read(position, { limit, types, until, partition })
        if (page.gap !== undefined && !isGapWanted(types)) throw new LogGapError(consumer, page.gap)
        if (!(await this.#emit(page, window))) return
        position = page.position
        if (page.isEnd) window.caughtUp()
        isEnd = page.isEnd && page.entries.length === 0 && until === undefined
      } finally {
        release()
      }
      if (isEnd) {
        await store.wait(position, signal, { reader: name, after: this.#redelivery }, partition)
        this.#lookedAt = -Infinity
      }
    }
  }

  /** Emits the dead letters to redeliver. Returns false if the reader was stopped meanwhile. */
  async #redeliver(window: AckWindow, most: number): Promise<boolean> {
    const { store, name } = this.#plan
    const limit = Math.min(REDELIVERY_PAGE, most)
    const { deadLetters, last } = await store.deadLetters.redeliveries(name, this.#redelivery, limit)
    for (const { entry, attempts, number } of deadLetters) {
      if (!(await this.#gateOpens())) return false
      // A dead letter that is no longer wanted stays where it is.
      if (this.#isWantedAgain(entry) && window.addAgain(entry.position, { number, attempts }))
        this.#next(entry)
    }
    this.#redelivery = last
    if (deadLetters.length === 0) this.#lookedAt = performance.now()
    return !this.isStopped
  }

  #next(entry: EntryOf<Type>): void {
    this.#plan.next({ ...entry, [ACKNOWLEDGER]: this })
  }

  /** Emits a page. Returns false if the reader was stopped meanwhile. */
  async #emit({ entries, lengths, position, gap }: Page, window: AckWindow): Promise<boolean> {
    for (const [index, entry] of entries.entries()) {
      if (this.#plan.gate?.closed === true && !(await this.#gateOpens())) return false
      if (this.isStopped) return false
      if (!this.#isWanted(entry, gap !== undefined)) window.skipTo(entry.position)
      else if (window.add(entry.position, lengths?.[index], gap && entry)) this.#next(entry)
    }
    window.skipTo(position)
    if (window.cursor !== this.#cursor.saved) this.#cursor.saveSoon(entries.length === 0)
    return !this.isStopped
  }

  /** The same as `#isWanted` for a dead letter. A gap is not filtered out, unless its type is left out. */
  #isWantedAgain(entry: Entry): entry is EntryOf<Type> {
    return this.#isWanted(entry, entry.type === 'log.gap' && isGapWanted(this.#plan.settings.types))
  }

  #isWanted(entry: Entry, isGap = false): entry is EntryOf<Type> {
    // A gap is never filtered out, since nothing else reports what was missed.
    if (isGap) return true
    const { types, where, revisions } = this.#plan.settings
    if (revisions === 'first' && entry.revision > 1) return false
    const wanted: readonly string[] | undefined = types
    if (wanted !== undefined && !wanted.includes(entry.type)) return false
    return where === undefined || where(entry as EntryOf<Type>)
  }

  /** Waits until the gate is open and fewer entries than the maximum are in flight, and takes a permit. Undefined once it is stopped. */
  async #permit(window: AckWindow): Promise<Permit | undefined> {
    const { limit, gate } = this.#plan
    const isOwnFull = () => gate?.closed === true || limit.remainingFor(window) <= 0
    while (!this.isStopped) {
      if (isOwnFull()) {
        const change = this.#change()
        if (gate?.closed !== true) {
          this.#watchStall()
          // An operator may hold the entry back that keeps the cursor.
          awaitAcknowledgements(gate, 0)
        }
        await change
        continue
      }
      const permit = await this.#sharedPermit()
      if (permit === undefined) return undefined
      const count = Math.min(permit.count, limit.remainingFor(window))
      if (!this.isStopped && !isOwnFull()) return { count, release: permit.release }
      permit.release()
    }
    return undefined
  }

  async #sharedPermit(): Promise<Permit | undefined> {
    const { limit } = this.#plan
    const given: Permit[] = []
    const ignore = limit.ask((permit) => {
      given.push(permit)
      this.#wake()
    })
    while (given.length === 0 && !this.isStopped) {
      if (!limit.isFree) this.#watchStall()
      await this.#change()
    }
    ignore()
    return given[0]
  }

  async #gateOpens(): Promise<boolean> {
    while (this.#plan.gate?.closed === true && !this.isStopped) await this.#change()
    return !this.isStopped
  }

  #change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve))
  }

  #changed(): void {
    this.#wake()
    this.#plan.limit.next()
    this.#finishIfIdle()
  }

  /** Errors if the same entry still blocks the readers after `stallTimeout` and is not being handled. */
  #watchStall(): void {
    const { limit } = this.#plan
    this.#watch(
      () => limit.stalled,
      ({ reader, position }) => reader.reportStall(position),
    )
  }

  #watch<Stalled extends { readonly position: Position }>(
    find: () => Stalled | undefined,
    report: (stalled: Stalled) => void,
  ): void {
    const first = this.#stallTimer.closed ? find() : undefined
    if (first === undefined) return
    const { scheduler, stallTimeout } = this.#plan.settings
    this.#stallTimer = scheduler.schedule(() => {
      this.#stallTimer = Subscription.EMPTY
      if (find()?.position === first.position) report(first)
      else this.#changed()
    }, stallTimeout)
  }

  /** Errors, since this entry was dropped. */
  reportStall(position: Position): void {
    const { store, settings, partition, consumer } = this.#plan
    const { types, maxUnacknowledged } = settings
    const after = this.#window?.cursor ?? position
    store.read(after, { limit: 2 * maxUnacknowledged, types, partition }).then(
      ({ entries }) => {
        const entry = entries.find((each) => each.position === position)
        this.#fail(new StalledConsumerError(consumer, position, entry))
      },
      (error: unknown) => this.#fail(error),
    )
  }

  #fail(error: unknown): void {
    const isExpected = error === this.#stop.signal.reason || error instanceof LogClosedError
    if (!this.isStopped || !isExpected) this.#plan.fail(error)
    this.stop()
  }

  #stopReading(): void {
    this.#stallTimer.unsubscribe()
    this.#stop.abort()
    this.#wake()
    // No more entries will fill the batches of an operator.
    awaitAcknowledgements(this.#plan.gate, 0)
    this.#finishIfIdle()
  }

  /** Entries in flight may be acknowledged after the reading has ended. */
  #finishIfIdle(): void {
    if (!this.isStopped || !this.#runEnded || this.#finished !== undefined) return
    const window = this.#window
    const isIdle = this.#isDraining ? (window?.unacknowledged ?? 0) === 0 : window?.isBeingHandled !== true
    if (isIdle) this.#finished = this.#finish()
    else if (this.#isDraining) this.#watchDrain(window)
  }

  #watchDrain(window: AckWindow | undefined): void {
    this.#watch(
      () => {
        const position = window?.stalled
        return position === undefined ? undefined : { position }
      },
      () => (this.#finished ??= this.#finish()),
    )
  }

  async #finish(): Promise<void> {
    this.#stallTimer.unsubscribe()
    await this.#running
    await this.#cursor.end()
    this.#plan.limit.delete(this)
    this.#end()
  }
}

/** Whether entries of this type are among those that the handler is written for. */
function isGapWanted(types: readonly string[] | undefined): boolean {
  return types === undefined || types.includes('log.gap')
}
