import type { Commit, Position, ReaderState } from '../store/contract.ts'
import type { Entry } from '../store/entry.ts'
import type { DeadLetterError, NewDeadLetter, Redelivery } from '../store/dead-letter-store.ts'

/** Maximum size of the dead letters in one commit as JSON, in bytes, and number of those that were handled. */
const MAX_DEAD_LETTER_BYTES = 96 * 1024
const MAX_REDELIVERED = 1_000

interface WindowSlot {
  position: Position
  /**
   * A skipped entry is not stored as acknowledged: another filter may want it after a restart. The commit that has the dead letter of
   * a dead entry acknowledges it.
   */
  state: 'open' | 'acknowledged' | 'skipped' | 'dead'
  /** Length of the entry as JSON, in characters. */
  readonly length: number
  /** The delivery of a redelivered dead letter. Its entry is behind the cursor, or acknowledged. */
  readonly redelivery: Redelivery | undefined
  /** The entry, for its dead letter, if the log does not have it. */
  readonly gap: Entry | undefined
  /** Why it could not be handled. */
  deadLetter: NewDeadLetter | undefined
  /** How often it was received and neither acknowledged nor released: once per part and per subscriber. */
  received: number
  /** Whether one of these receipts was acknowledged. */
  isAcknowledged: boolean
  /** Once a part was released, the other parts do not acknowledge the entry. */
  isReleased: boolean
}

/**
 * The entries of a reader from its cursor to the last one that was read. The cursor moves past the gap-free run of those that
 * were acknowledged or skipped.
 *
 *     read:  1 ✓   2 ✓   3 …   4 ✓   5 …        cursor: 2   acknowledged: 4
 */
export class AckWindow {
  #cursor: Position
  /** Slots in the order of the log. The slots before `#first` are behind the cursor. */
  #slots: WindowSlot[] = []
  #first = 0
  /** The slots that are open. */
  readonly #open = new Map<Position, WindowSlot>()
  /** Number of slots with a `received` above 0. */
  #beingHandled = 0
  /** Length of the open slots as JSON, in characters. */
  #length = 0
  /** Slots whose dead letters are not in a commit yet. */
  #dead: WindowSlot[] = []
  /** Positions of redelivered dead letters that are handled. */
  #redelivered: Position[] = []
  /** Positions that were acknowledged before a restart, and not read since. */
  readonly #before: Set<Position>
  #until: Position | undefined

  constructor({ cursor, acknowledged }: ReaderState) {
    this.#cursor = cursor
    this.#before = new Set(acknowledged)
    this.#until = acknowledged.at(-1)
  }

  /**
   * The last entry that was acknowledged before a restart; undefined once everything up to it was read. Entries before it that were
   * not read again are no longer wanted.
   */
  get until(): Position | undefined {
    return this.#until
  }

  /** Everything up to here was acknowledged or skipped. */
  get cursor(): Position {
    return this.#cursor
  }

  /** Whether an entry was received and is not acknowledged yet. */
  get isBeingHandled(): boolean {
    return this.#beingHandled > 0
  }

  /** Number of entries that are not acknowledged. */
  get unacknowledged(): number {
    return this.#open.size
  }

  /** Length of the entries that are not acknowledged as JSON, in characters. */
  get length(): number {
    return this.#length
  }

  /** Whether there is more than one commit takes. */
  get hasMore(): boolean {
    return this.#dead.length > 0 || this.#redelivered.length > 0
  }

  /** Number of entries and skipped ranges from the cursor on. */
  get size(): number {
    return this.#slots.length - this.#first
  }

  /** The entry that keeps the cursor or a dead letter, if it is neither acknowledged nor received. */
  get stalled(): Position | undefined {
    const first = this.#slots[this.#first]
    if (first?.state === 'open') return first.received === 0 ? first.position : undefined
    for (const slot of this.#open.values()) {
      if (slot.redelivery !== undefined && slot.received === 0) return slot.position
    }
    return undefined
  }

  /**
   * Adds the next entry. Returns whether to emit it: not when it was acknowledged before a restart.
   *
   * @param gap The entry if it is not in the log.
   */
  add(position: Position, length = 0, gap?: Entry): boolean {
    const isKnown = this.#before.delete(position)
    if (position === this.#until) this.caughtUp()
    const slot = slotOf(position, isKnown ? 'acknowledged' : 'open', length, { gap })
    this.#slots.push(slot)
    if (isKnown) this.#advance()
    else this.#opened(slot)
    return !isKnown
  }

  /** Adds a dead letter that is handed out again. Returns whether to emit it: not while it is out. */
  addAgain(position: Position, redelivery: Redelivery): boolean {
    if (this.#open.has(position)) return false
    this.#opened(slotOf(position, 'open', 0, { redelivery }))
    return true
  }

  #opened(slot: WindowSlot): void {
    this.#open.set(slot.position, slot)
    this.#length += slot.length
  }

  /** Nothing up to this position is emitted. */
  skipTo(position: Position): void {
    const last = this.#slots.at(-1)
    if (this.size > 0 && last?.state === 'skipped') last.position = position
    else this.#slots.push(slotOf(position, 'skipped', 0))
    this.#advance()
  }

  /** Everything up to {@link until} was read. */
  caughtUp(): void {
    this.#before.clear()
    this.#until = undefined
  }

  /** An entry may be received more than once: by two subscribers, or in two parts. */
  received(position: Position): void {
    const slot = this.#open.get(position)
    if (slot === undefined) return
    slot.received += 1
    if (slot.received === 1) this.#beingHandled += 1
  }

  /** Releases one receipt of an entry: it will not be acknowledged after all, so the entry stays open. */
  release(position: Position): void {
    const slot = this.#open.get(position)
    if (slot === undefined || slot.received === 0) return
    slot.isReleased = true
    this.#settle(slot)
  }

  /** The entry could not be handled. Its acknowledgement follows. */
  deadLetter(position: Position, error: DeadLetterError, attempts: number): void {
    const slot = this.#open.get(position)
    if (slot === undefined) return
    const { redelivery, gap } = slot
    slot.deadLetter = {
      position,
      error,
      attempts: attempts + (redelivery?.attempts ?? 0),
      ...(redelivery !== undefined && { redelivery: redelivery.number }),
      ...(gap !== undefined && { entry: gap }),
    }
  }

  /**
   * Acknowledges one receipt of an entry. An entry that was not received is acknowledged at once.
   *
   * @returns Whether this acknowledges the entry: each receipt is acknowledged, and none was released.
   */
  acknowledge(position: Position): boolean {
    const slot = this.#open.get(position)
    if (slot === undefined) return false
    if (slot.received === 0) return this.#acknowledged(slot)
    slot.isAcknowledged = true
    return this.#settled(slot)
  }

  /**
   * Ends one receipt of an entry that neither acknowledges nor releases it: other receipts decide.
   *
   * @returns As {@link acknowledge}.
   */
  handedOn(position: Position): boolean {
    const slot = this.#open.get(position)
    return slot !== undefined && slot.received > 0 && this.#settled(slot)
  }

  #settled(slot: WindowSlot): boolean {
    this.#settle(slot)
    return slot.received === 0 && slot.isAcknowledged && !slot.isReleased && this.#acknowledged(slot)
  }

  #acknowledged(slot: WindowSlot): boolean {
    const { position } = slot
    this.#open.delete(position)
    this.#length -= slot.length
    if (slot.deadLetter !== undefined) {
      slot.state = 'dead'
      this.#dead.push(slot)
      return true
    }
    slot.state = 'acknowledged'
    if (slot.redelivery !== undefined) this.#redelivered.push(position)
    this.#advance()
    return true
  }

  #settle(slot: WindowSlot): void {
    slot.received -= 1
    if (slot.received === 0) this.#beingHandled -= 1
  }

  /** The next changes to save, as many as one commit takes. If they are not saved, the window can no longer be used. */
  take(): Omit<Commit, 'expect'> {
    const redelivered = this.#redelivered.splice(0, MAX_REDELIVERED)
    const deadLetters = this.#takeLetters()
    return {
      ...this.state,
      ...(deadLetters.length > 0 && { deadLetters }),
      ...(redelivered.length > 0 && { redelivered }),
    }
  }

  #takeLetters(): readonly NewDeadLetter[] {
    const deadLetters: NewDeadLetter[] = []
    let bytes = 0
    for (const { deadLetter } of this.#dead) {
      bytes += sizeOf(deadLetter)
      if (deadLetter === undefined || (bytes > MAX_DEAD_LETTER_BYTES && deadLetters.length > 0)) break
      deadLetters.push(deadLetter)
    }
    for (const slot of this.#dead.splice(0, deadLetters.length)) slot.state = 'acknowledged'
    if (deadLetters.length > 0) this.#advance()
    return deadLetters
  }

  /** The cursor, and the acknowledged positions after it. The last one is the furthest. */
  get state(): ReaderState {
    const acknowledged: Position[] = []
    for (let at = this.#first; at < this.#slots.length; at++) {
      const slot = this.#slots[at]
      if (slot?.state === 'acknowledged') acknowledged.push(slot.position)
    }
    return { cursor: this.#cursor, acknowledged: [...acknowledged, ...this.#before] }
  }

  /** The state that it would have if these positions were acknowledged, and dead letters saved. */
  stateAfter(positions: ReadonlySet<Position>): ReaderState {
    let cursor = this.#cursor
    let isGapless = true
    const acknowledged: Position[] = []
    for (let at = this.#first; at < this.#slots.length; at++) {
      const slot = this.#slots[at]
      if (slot === undefined) break
      const isDone = slot.state !== 'open' || positions.has(slot.position)
      isGapless &&= isDone
      if (isGapless) cursor = slot.position
      else if (isDone && slot.state !== 'skipped') acknowledged.push(slot.position)
    }
    return { cursor, acknowledged: [...acknowledged, ...this.#before] }
  }

  /** Whether it was read and is not acknowledged. */
  isOpen(position: Position): boolean {
    return this.#open.has(position)
  }

  /** The delivery of a redelivered dead letter that is open; undefined for another entry. */
  redelivery(position: Position): Redelivery | undefined {
    return this.#open.get(position)?.redelivery
  }

  /** Dead letters for the next commits. */
  addDeadLetters(deadLetters: readonly NewDeadLetter[]): void {
    for (const deadLetter of deadLetters)
      this.#dead.push({ ...slotOf(deadLetter.position, 'dead', 0), deadLetter })
  }

  #advance(): void {
    const slots = this.#slots
    for (let slot = slots[this.#first]; slot !== undefined; slot = slots[this.#first]) {
      if (slot.state === 'open' || slot.state === 'dead') break
      this.#cursor = slot.position
      this.#first += 1
    }
    // Removing them one by one would move all of the others each time.
    if (this.#first > slots.length / 2) {
      this.#slots = slots.slice(this.#first)
      this.#first = 0
    }
  }
}

function slotOf(
  position: Position,
  state: WindowSlot['state'],
  length: number,
  { redelivery, gap }: Partial<Pick<WindowSlot, 'redelivery' | 'gap'>> = {},
): WindowSlot {
  return {
    position,
    state,
    length,
    redelivery,
    gap,
    deadLetter: undefined,
    received: 0,
    isAcknowledged: false,
    isReleased: false,
  }
}

/** Size as JSON, in bytes. */
function sizeOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length
}
