import { joinedBatches } from '../batches.ts'
import { Queue } from '../queue.ts'

/** Waiting events that are started in order. */
export interface Partition<T> {
  /** Removes and returns the first event. */
  shift(): T | undefined
}

/** Buffers events until they are started. */
export interface Backlog<T> {
  /** Number of waiting events. */
  readonly size: number
  /** Appends an event to its partition. A batch is joined with the last one if both are small enough. */
  push(event: T): void
  /** Selects the partition whose first event is started next; undefined when none is ready. */
  next(): Partition<T> | undefined
  /** Puts the parts of an event that was taken from this partition in front of the others. */
  putBack(partition: Partition<T>, parts: readonly T[]): void
  /** Reports that the event taken from this partition has ended. */
  release(partition: Partition<T>): void
  /** Removes and returns all waiting events. */
  drain(): readonly T[]
}

/** Appends an event, or joins a batch with the last one. Returns whether the queue has one more event. */
function append<T>(queue: Queue<T>, event: T): boolean {
  const { last } = queue
  const joined = last === undefined ? undefined : joinedBatches(last, event)
  if (joined === undefined) {
    queue.push(event)
    return true
  }
  const [filled, rest] = joined
  queue.replaceLast(filled)
  if (rest !== undefined) queue.push(rest)
  return rest !== undefined
}

/** A single partition that is always ready: events start in order and run concurrently. */
export class UnkeyedBacklog<T> implements Backlog<T> {
  readonly #events = new Queue<T>()

  get size(): number {
    return this.#events.size
  }

  push(event: T): void {
    append(this.#events, event)
  }

  next(): Partition<T> | undefined {
    return this.size === 0 ? undefined : this.#events
  }

  putBack(_: Partition<T>, parts: readonly T[]): void {
    this.#events.unshift(parts)
  }

  release(): void {}

  drain(): readonly T[] {
    return this.#events.drain()
  }
}

class KeyPartition<T> extends Queue<T> {
  readonly key: string

  constructor(key: string) {
    super()
    this.key = key
  }
}

/**
 * One partition per key, with at most one event in flight each. Partitions are served round-robin, so a busy key does
 * not starve the others. A key without events uses no memory.
 */
export class KeyedBacklog<T> implements Backlog<T> {
  readonly #keyOf: (event: T) => string
  readonly #partitions = new Map<string, KeyPartition<T>>()
  /** Partitions with waiting events and none in flight. */
  readonly #ready = new Queue<KeyPartition<T>>()
  #size = 0

  constructor(keyOf: (event: T) => string) {
    this.#keyOf = keyOf
  }

  get size(): number {
    return this.#size
  }

  push(event: T): void {
    const key = this.#keyOf(event)
    let partition = this.#partitions.get(key)
    if (partition === undefined) {
      partition = new KeyPartition(key)
      this.#partitions.set(key, partition)
      this.#ready.push(partition)
    }
    if (append(partition, event)) this.#size += 1
  }

  next(): Partition<T> | undefined {
    const partition = this.#ready.shift()
    if (partition !== undefined) this.#size -= 1
    return partition
  }

  putBack(partition: KeyPartition<T>, parts: readonly T[]): void {
    partition.unshift(parts)
    this.#size += parts.length
  }

  release(partition: KeyPartition<T>): void {
    if (partition.size > 0) this.#ready.push(partition)
    else this.#partitions.delete(partition.key)
  }

  drain(): readonly T[] {
    const events = [...this.#partitions.values()].flatMap((partition) => partition.drain())
    this.#partitions.clear()
    this.#ready.clear()
    this.#size = 0
    return events
  }
}
