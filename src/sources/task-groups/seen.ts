import { hash, hashOfRunId, hashString } from '../../protocol/identity-hash.ts'
import { BLOCK, CAPACITY, ENTRY, KEPT, parseWords, POSITION, SeenEntries } from './seen-entries.ts'

/** The lowest bits of an entry's third number are the status of a run; the others are a hash of the event's position. */
const STATUS = 0b11

/** What is no run has this status. */
const NO_STATUS = 0
const COMPLETED = 1
const FAILED = 2
/** The position that an entry has where the event had none, or where the service no longer knows it. */
const NO_POSITION = 0

/** Keys of different kinds begin differently, so that a run and a position of the same name are two keys. */
const RUN = 0x0a11ce
const PLACE = 0x0b0b
const MOVE = 0x3070ed
const SKIPPED = 0x5c1bbed

/** The hash of a key. One place for all: an array for each event would cost more than its hash. */
let first = 0
let second = 0

function toKey(kind: number, lanes: Int32Array): void {
  first = (lanes[0] ?? 0) ^ kind
  second = lanes[1] ?? 0
}

/**
 * A short hash of a position, made of its last characters. It distinguishes the positions of one run, so
 * that a collision costs nothing but a position that does not move.
 */
function positionOf(cursor: string | undefined): number {
  if (cursor === undefined) return NO_POSITION
  const { length } = cursor
  let position = length
  for (let at = Math.max(0, length - 4); at < length; at++) {
    position = Math.imul(position, 0x01000193) ^ cursor.charCodeAt(at)
  }
  // Zero stands for no position.
  return position << 2 || STATUS + 1
}

/** Runs that ended, so many in each way. */
export type EndedCounts = readonly [completed: number, failed: number, cancelled: number]

/**
 * Which events of a stream were seen: runs with their last status and position, and the positions of other events.
 *
 * A hash of 64 bits stands for each, in a list that only grows, so that the beginning of it stays what it was at an
 * earlier moment: that is what {@link text} needs. Some 20 bytes an event. After {@link CAPACITY} events a new list is
 * begun, and the one before the last is forgotten.
 */
export class SeenEvents {
  #current = new SeenEntries()
  #previous: SeenEntries | undefined
  #isPartial = false
  #completed = 0
  #failed = 0
  #cancelled = 0
  readonly #capacity: number

  /** @param capacity Events of one list. */
  constructor(capacity: number = CAPACITY) {
    this.#capacity = capacity
  }

  /** Whether events were seen that are not remembered. */
  get isPartial(): boolean {
    return this.#isPartial
  }

  /** Runs that were seen to have ended, each counted once, by the status that it was seen with last. */
  get counts(): EndedCounts {
    return [this.#completed, this.#failed, this.#cancelled]
  }

  /**
   * Notes the end of a run. Returns whether that is new: the run, its status, or where the stream has it.
   *
   * @param status 1 for `completed`, 2 for `failed`, 3 for `cancelled`.
   */
  run(runId: string, status: number, cursor: string | undefined): boolean {
    toKey(RUN, hashOfRunId(runId))
    const a = first
    const b = second
    const known = this.#find()
    const position = positionOf(cursor)
    if (known === undefined) {
      this.#count(status, 1)
      this.#add(a, b, position | status)
      return true
    }
    const before = known & STATUS
    const place = known & ~STATUS
    if (cursor !== undefined) {
      if (place === position) return false
      // At a second position the run is not new, and that position is noted beside the first.
      if (place !== NO_POSITION && !this.place(cursor)) return false
    } else if (before === status) {
      return false
    }
    if (before !== status || place === NO_POSITION) {
      this.#count(before, -1)
      this.#count(status, 1)
      this.#add(a, b, (place === NO_POSITION ? position : place) | status)
    }
    return true
  }

  /** Notes an event that is no run's. Returns whether its position was not seen before. */
  place(cursor: string): boolean {
    return this.#note(PLACE, cursor)
  }

  /** Notes a position that came without an event. Returns whether it did not before. */
  move(cursor: string): boolean {
    return this.#note(MOVE, cursor)
  }

  /** Notes that an event was skipped. Returns whether it was not before. */
  skipped(event: string): boolean {
    return this.#note(SKIPPED, event)
  }

  /**
   * The stream begins again, and the service knows no position any more. Which runs were seen stays known where all are
   * remembered; else those that are not would count twice, and the count begins again as well.
   */
  forgetPositions(): void {
    const tables = this.#previous === undefined ? [this.#current] : [this.#previous, this.#current]
    this.#current = new SeenEntries()
    this.#previous = undefined
    if (this.#isPartial) {
      this.#isPartial = false
      this.#completed = this.#failed = this.#cancelled = 0
      return
    }
    for (const table of tables) {
      for (let entry = 0; entry < table.size; entry++) {
        const status = table.get(entry, POSITION) & STATUS
        if (status !== NO_STATUS) this.#add(table.get(entry, 0), table.get(entry, 1), status)
      }
    }
  }

  /** The list as it is now. */
  get moment(): SeenMoment {
    return new SeenMoment(this.#previous, this.#current, this.#completed, this.#failed, this.#cancelled)
  }

  /**
   * Notes what a {@link SeenMoment} wrote. Returns whether the text can be one.
   *
   * @param counts The counts of that moment; more than the text has runs where it was too long.
   */
  read(text: string, [completed, failed, cancelled]: EndedCounts): boolean {
    const words = parseWords(text)
    if (words === undefined) return false
    const runs = new Set<string>()
    for (let at = 0; at < words.length; at += ENTRY) {
      const [a = 0, b = 0, detail = 0] = words.subarray(at, at + ENTRY)
      if ((detail & STATUS) !== NO_STATUS) runs.add(`${a} ${b}`)
      this.#add(a, b, detail)
    }
    this.#completed = completed
    this.#failed = failed
    this.#cancelled = cancelled
    this.#isPartial = completed + failed + cancelled > runs.size
    return true
  }

  #note(kind: number, text: string): boolean {
    hashString(text)
    toKey(kind, hash)
    if (this.#find() !== undefined) return false
    this.#add(first, second, NO_STATUS)
    return true
  }

  #find(): number | undefined {
    return this.#current.find(first, second) ?? this.#previous?.find(first, second)
  }

  #add(a: number, b: number, detail: number): void {
    if (this.#current.size === this.#capacity) {
      if (this.#previous !== undefined) this.#isPartial = true
      this.#previous = this.#current
      this.#current = new SeenEntries()
    }
    this.#current.add(a, b, detail)
  }

  #count(status: number, by: number): void {
    if (status === COMPLETED) this.#completed += by
    else if (status === FAILED) this.#failed += by
    else this.#cancelled += by
  }
}

/** What was seen at one moment. It is written as text only when it is asked for. */
export class SeenMoment {
  readonly #previous: SeenEntries | undefined
  readonly #current: SeenEntries
  readonly #size: number

  readonly #completed: number
  readonly #failed: number
  readonly #cancelled: number

  constructor(
    previous: SeenEntries | undefined,
    current: SeenEntries,
    completed: number,
    failed: number,
    cancelled: number,
  ) {
    this.#previous = previous
    this.#current = current
    this.#size = current.size
    this.#completed = completed
    this.#failed = failed
    this.#cancelled = cancelled
  }

  /** See {@link SeenEvents.counts}. */
  get counts(): EndedCounts {
    return [this.#completed, this.#failed, this.#cancelled]
  }

  /** The last {@link KEPT} entries, or less than {@link BLOCK} fewer. */
  text(): string {
    const blocks = Math.ceil(this.#size / BLOCK)
    const before = this.#previous?.text(this.#previous.size, KEPT / BLOCK - blocks) ?? ''
    return before + this.#current.text(this.#size, KEPT / BLOCK)
  }
}
