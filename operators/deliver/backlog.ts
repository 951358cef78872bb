import { Queue } from '../queue.ts'

/** Events that are started one after another. */
export interface Lane<T> {
  /** Takes the first. */
  shift(): T | undefined
}

/** Events that wait to be started, and the order in which they are. */
export interface Backlog<T> {
  /** How many wait. */
  readonly size: number
  /** Adds an event at the end of its lane. */
  push(event: T): void
  /** The lane whose turn it is, for its first event to be taken; undefined where none may be started now. */
  turn(): Lane<T> | undefined
  /** What was taken from the lane is over. */
  release(lane: Lane<T>): void
  /** Drops everything. */
  clear(): void
}

/** One lane for everything, which never waits for what was taken from it. */
export class OpenBacklog<T> extends Queue<T> implements Backlog<T> {
  turn(): Lane<T> | undefined {
    return this.size === 0 ? undefined : this
  }

  release(): void {}
}

class KeyLane<T> extends Queue<T> {
  readonly key: string

  constructor(key: string) {
    super()
    this.key = key
  }
}

/**
 * A lane for each key, from which nothing is taken while something of it is under way. Lanes take turns, so that a key
 * with many events does not keep the others waiting. A key that has nothing left costs nothing.
 */
export class KeyedBacklog<T> implements Backlog<T> {
  readonly #keyOf: (event: T) => string
  readonly #lanes = new Map<string, KeyLane<T>>()
  /** Lanes with something in them and nothing under way. */
  readonly #ready = new Queue<KeyLane<T>>()
  #size = 0

  constructor(keyOf: (event: T) => string) {
    this.#keyOf = keyOf
  }

  get size(): number {
    return this.#size
  }

  push(event: T): void {
    const key = this.#keyOf(event)
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      lane = new KeyLane(key)
      this.#lanes.set(key, lane)
      this.#ready.push(lane)
    }
    lane.push(event)
    this.#size += 1
  }

  turn(): Lane<T> | undefined {
    const lane = this.#ready.shift()
    if (lane !== undefined) this.#size -= 1
    return lane
  }

  release(lane: KeyLane<T>): void {
    if (lane.size > 0) this.#ready.push(lane)
    else this.#lanes.delete(lane.key)
  }

  clear(): void {
    for (const lane of this.#lanes.values()) lane.clear()
    this.#lanes.clear()
    this.#ready.clear()
    this.#size = 0
  }
}
