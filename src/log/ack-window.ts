import type { Position, ReaderState } from './contract.ts'

interface Slot {
  position: Position
  /** A skipped one is not stored as acknowledged: another filter may want it after a restart. */
  state: 'open' | 'received' | 'acknowledged' | 'skipped'
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
  /** The slots that are open or received. */
  readonly #open = new Map<Position, Slot>()
  #received = 0
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

  /** Whether an entry is in the hands of somebody who will acknowledge it. */
  get isBeingHandled(): boolean {
    return this.#received > 0
  }

  /** Number of entries that are not acknowledged. */
  get unacknowledged(): number {
    return this.#open.size
  }

  /** Number of entries and skipped ranges from the cursor on. */
  get size(): number {
    return this.#slots.length - this.#first
  }

  /** The first entry that is neither acknowledged nor in the hands of somebody who will acknowledge it. */
  get stalled(): Position | undefined {
    const slot = this.#slots[this.#first]
    return slot?.state === 'open' ? slot.position : undefined
  }

  /** Adds the next entry. Returns whether to emit it: not when it was acknowledged before a restart. */
  add(position: Position): boolean {
    const isKnown = this.#before.delete(position)
    const slot: Slot = { position, state: isKnown ? 'acknowledged' : 'open' }
    this.#slots.push(slot)
    if (isKnown) this.#advance()
    else this.#open.set(position, slot)
    return !isKnown
  }

  /** Nothing up to this position is emitted. */
  skipTo(position: Position): void {
    const last = this.#slots.at(-1)
    if (this.size > 0 && last?.state === 'skipped') last.position = position
    else this.#slots.push({ position, state: 'skipped' })
    this.#advance()
  }

  /** Everything up to the end of the log was read. */
  caughtUp(): void {
    this.#before.clear()
  }

  received(position: Position): void {
    const slot = this.#open.get(position)
    if (slot?.state !== 'open') return
    slot.state = 'received'
    this.#received += 1
  }

  /** It will not be acknowledged after all. */
  release(position: Position): void {
    const slot = this.#open.get(position)
    if (slot?.state !== 'received') return
    slot.state = 'open'
    this.#received -= 1
  }

  /** Acknowledges an entry. Returns whether that is new. */
  acknowledge(position: Position): boolean {
    const slot = this.#open.get(position)
    if (slot === undefined) return false
    this.#open.delete(position)
    if (slot.state === 'received') this.#received -= 1
    slot.state = 'acknowledged'
    this.#advance()
    return true
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
      if (slot.state === 'open' || slot.state === 'received') break
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
