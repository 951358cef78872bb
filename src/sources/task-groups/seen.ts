import { hash, hashOfRunId, hashString } from '../../protocol/identity-hash.ts'
import { DETAIL, ENTRY, SeenHistory } from '../shapes/seen-entries.ts'

/** The lowest bits of an entry's detail are the status of a run; the others are a hash of the event's cursor. */
const STATUS = 0b11

/** The status of an entry that is not a run. */
const NO_STATUS = 0
const COMPLETED = 1
const FAILED = 2
/** The cursor hash of an entry without a cursor, or with one that the service no longer knows. */
const NO_CURSOR = 0

/** Mixed into each key by kind, so that a run id and an equal cursor are different keys. */
const RUN = 0x0a11ce
const EVENT = 0x0b0b
const MOVE = 0x3070ed
const SKIPPED = 0x5c1bbed

/** The current key, a hash of 64 bits. Module variables, since an array per event would cost more than its hash. */
let first = 0
let second = 0

function setKey(kind: number, words: Int32Array): void {
  first = (words[0] ?? 0) ^ kind
  second = words[1] ?? 0
}

/**
 * A short hash of a cursor, from its last characters. It distinguishes the cursors of one run. After a collision the position
 * does not advance, which is harmless.
 */
function cursorHash(cursor: string | undefined): number {
  if (cursor === undefined) return NO_CURSOR
  const { length } = cursor
  let result = length
  for (let at = Math.max(0, length - 4); at < length; at++) {
    result = Math.imul(result, 0x01000193) ^ cursor.charCodeAt(at)
  }
  // Zero is NO_CURSOR.
  return result << 2 || STATUS + 1
}

/** Number of ended runs by status. */
export type EndedCounts = readonly [completed: number, failed: number, cancelled: number]

/**
 * The events of a group's stream that were seen, as hashes of 64 bits: runs with their last status and cursor, and the cursors of other
 * events.
 */
export class SeenEvents extends SeenHistory {
  #completed = 0
  #failed = 0
  #cancelled = 0

  /** The distinct runs that were seen, each counted once with its last status. */
  get counts(): EndedCounts {
    return [this.#completed, this.#failed, this.#cancelled]
  }

  /**
   * Remembers the end of a run. Returns whether it is new: the run, its status or its cursor.
   *
   * @param status 1 for `completed`, 2 for `failed`, 3 for `cancelled`.
   */
  addRun(runId: string, status: number, cursor: string | undefined): boolean {
    setKey(RUN, hashOfRunId(runId))
    const a = first
    const b = second
    const known = this.find(first, second)
    const hashed = cursorHash(cursor)
    if (known === undefined) {
      this.#count(status, 1)
      this.add(a, b, hashed | status)
      return true
    }
    const knownStatus = known & STATUS
    const knownCursor = known & ~STATUS
    if (cursor !== undefined) {
      if (knownCursor === hashed) return false
      // The run has a second cursor, which is remembered as an entry of its own.
      if (knownCursor !== NO_CURSOR && !this.addEvent(cursor)) return false
    } else if (knownStatus === status) {
      return false
    }
    if (knownStatus !== status || knownCursor === NO_CURSOR) {
      this.#count(knownStatus, -1)
      this.#count(status, 1)
      this.add(a, b, (knownCursor === NO_CURSOR ? hashed : knownCursor) | status)
    }
    return true
  }

  /** Remembers an event other than a run by its cursor. Returns whether it is new. */
  addEvent(cursor: string): boolean {
    return this.#addText(EVENT, cursor)
  }

  /** Remembers a cursor that came without an event. Returns whether it is new. */
  addMove(cursor: string): boolean {
    return this.#addText(MOVE, cursor)
  }

  /** Remembers a skipped event. Returns whether it is new. */
  addSkipped(event: string): boolean {
    return this.#addText(SKIPPED, event)
  }

  /**
   * Forgets all cursors, since the stream restarts. The runs stay known, unless some were forgotten: those would count
   * twice, so the counts restart as well.
   */
  forgetPositions(): void {
    const { isPartial } = this
    const entries = this.takeAll()
    if (isPartial) {
      this.#completed = this.#failed = this.#cancelled = 0
      return
    }
    for (const [a, b, detail] of entries) {
      if ((detail & STATUS) !== NO_STATUS) this.add(a, b, detail & STATUS)
    }
  }

  /**
   * Restores the text of a {@link snapshot}. Returns whether the text is valid.
   *
   * @param counts The counts at its time, which may exceed the number of runs in the text.
   */
  restore(text: string, [completed, failed, cancelled]: EndedCounts): boolean {
    this.#completed = completed
    this.#failed = failed
    this.#cancelled = cancelled
    return this.restoreText(text, (words) => completed + failed + cancelled > runsIn(words))
  }

  #addText(kind: number, text: string): boolean {
    hashString(text)
    setKey(kind, hash)
    if (this.find(first, second) !== undefined) return false
    this.add(first, second, NO_STATUS)
    return true
  }

  #count(status: number, by: number): void {
    if (status === COMPLETED) this.#completed += by
    else if (status === FAILED) this.#failed += by
    else this.#cancelled += by
  }
}

/** Number of distinct runs among entries. */
function runsIn(words: Int32Array): number {
  const runs = new Set<string>()
  for (let at = 0; at < words.length; at += ENTRY) {
    if (((words[at + DETAIL] ?? 0) & STATUS) !== NO_STATUS) runs.add(`${words[at]} ${words[at + 1]}`)
  }
  return runs.size
}
