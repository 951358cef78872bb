import type { Position, ReaderState } from './contract.ts'

interface Slot {
  position: Position
  /** A skipped one is not stored as acknowledged: another filter may want it after a restart. */
  state: 'open' | 'acknowledged' | 'skipped'
  /** How often it was received and neither acknowledged nor released: once per part and per subscriber. */
  received: number
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
  /** In order. Those before `#first` are behind the cursor. */
  #slots: Slot[] = []
  #first = 0
  /** The slots that are open. */
  readonly #open = new Map<Position, Slot>()
  /** Number of slots with a `received` above 0. */
  #beingHandled = 0
  /** Acknowledged before a restart, and not read since. */
  readonly #before: Set<Position>

  constructor({ cursor, acknowledged }: ReaderState) {
    this.#cursor = cursor
    this.#before = new Set(acknowledged)
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

  /** Number of entries and skipped ranges from the cursor on. */
  get size(): number {
    return this.#slots.length - this.#first
  }

  /** The first entry, if it is neither acknowledged nor received. */
  get stalled(): Position | undefined {
    const slot = this.#slots[this.#first]
    return slot?.state === 'open' && slot.received === 0 ? slot.position : undefined
  }

  /** Adds the next entry. Returns whether to emit it: not when it was acknowledged before a restart. */
  add(position: Position): boolean {
    const isKnown = this.#before.delete(position)
    const slot = slotOf(position, isKnown ? 'acknowledged' : 'open')
    this.#slots.push(slot)
    if (isKnown) this.#advance()
    else this.#open.set(position, slot)
    return !isKnown
  }

  /** Nothing up to this position is emitted. */
  skipTo(position: Position): void {
    const last = this.#slots.at(-1)
    if (this.size > 0 && last?.state === 'skipped') last.position = position
    else this.#slots.push(slotOf(position, 'skipped'))
    this.#advance()
  }

  /** Everything up to the end of the log was read. */
  caughtUp(): void {
    this.#before.clear()
  }

  /** An entry may be received more than once: by two subscribers, or in two parts. */
  received(position: Position): void {
    const slot = this.#open.get(position)
    if (slot === undefined) return
    slot.received += 1
    if (slot.received === 1) this.#beingHandled += 1
  }

  /** What was received once will not be acknowledged after all, so the entry stays open. */
  release(position: Position): void {
    const slot = this.#open.get(position)
    if (slot === undefined || slot.received === 0) return
    slot.isReleased = true
    this.#settle(slot)
  }

  /**
   * Acknowledges what was received once. An entry that was not received is acknowledged at once.
   *
   * @returns Whether the entry is acknowledged by that: all that was received is, and nothing was released.
   */
  acknowledge(position: Position): boolean {
    const slot = this.#open.get(position)
    if (slot === undefined) return false
    if (slot.received > 0) {
      this.#settle(slot)
      if (slot.received > 0 || slot.isReleased) return false
    }
    this.#open.delete(position)
    slot.state = 'acknowledged'
    this.#advance()
    return true
  }

  #settle(slot: Slot): void {
    slot.received -= 1
    if (slot.received === 0) this.#beingHandled -= 1
  }

  /** What to save. */
  get state(): ReaderState {
    const acknowledged = [...this.#before]
    for (let at = this.#first; at < this.#slots.length; at++) {
      const slot = this.#slots[at]
      if (slot?.state === 'acknowledged') acknowledged.push(slot.position)
    }
    return { cursor: this.#cursor, acknowledged }
  }

  #advance(): void {
    const slots = this.#slots
    for (let slot = slots[this.#first]; slot !== undefined; slot = slots[this.#first]) {
      if (slot.state === 'open') break
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

function slotOf(position: Position, state: Slot['state']): Slot {
  return { position, state, received: 0, isReleased: false }
}
