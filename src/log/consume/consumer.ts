import type { Subscriber } from 'rxjs'
import { awaitAcknowledgements, expectAcknowledgements } from '../../protocol/acknowledgement.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import { gateOf } from '../../protocol/gate.ts'
import type { Gate } from '../../protocol/gate.ts'
import { ConsumerReader, PAGE } from './consumer-reader.ts'
import type { ConsumerSettings, EntryOf } from './consumer-options.ts'
import { divide } from './dividing.ts'
import type { LogStore } from '../store/contract.ts'
import type { ConsumerEffects } from './effects.ts'
import { FencedError, LogClosedError } from '../errors.ts'
import { InFlightLimit } from './in-flight-limit.ts'
import { checkWhole, partName } from './part-name.ts'

interface ConsumerSubscriptionOptions<Type extends ResearchEventType> {
  /** The name of the consumer. */
  readonly name: string
  readonly settings: ConsumerSettings<Type>
  /** Resolves when an earlier subscription of the name has ended. */
  readonly after: Promise<void> | undefined
  readonly effects: ConsumerEffects<unknown> | undefined
}

/**
 * One subscription to a consumer: one reader, or one for each partition that this open log owns. Unsubscribing ends the reading;
 * entries that were received may still be acknowledged.
 */
export class ConsumerSubscription<Type extends ResearchEventType = ResearchEventType> {
  /** Resolves when the subscription has ended, its acknowledgements are saved and its names are released. Never rejects. */
  readonly ended: Promise<void>
  readonly #store: LogStore
  readonly #name: string
  readonly #settings: ConsumerSettings<Type>
  readonly #subscriber: Subscriber<EntryOf<Type>>
  readonly #gate: Gate | undefined
  readonly #effects: ConsumerEffects<unknown> | undefined
  readonly #limit: InFlightLimit<ConsumerReader<Type>>
  readonly #stop = new AbortController()
  /** The partitions that this open log owns. */
  #own: ReadonlySet<number> = new Set()
  /** The latest reader of each partition, by its name. */
  readonly #latest = new Map<string, ConsumerReader<Type>>()
  /** Readers that had not ended when the subscription was stopped. */
  readonly #readers = new Set<ConsumerReader<Type>>()

  constructor(
    store: LogStore,
    subscriber: Subscriber<EntryOf<Type>>,
    { name, settings, after, effects }: ConsumerSubscriptionOptions<Type>,
  ) {
    this.#store = store
    this.#name = `consumer:${name}`
    this.#settings = settings
    this.#subscriber = subscriber
    this.#gate = gateOf(subscriber)
    this.#effects = effects
    this.#limit = new InFlightLimit(settings.maxUnacknowledged, PAGE, (count) =>
      awaitAcknowledgements(this.#gate, count),
    )
    if (this.#gate !== undefined) expectAcknowledgements(this.#gate)
    const unlisten = this.#gate?.onChange(() => {
      for (const reader of this.#readers) reader.gateChanged()
    })
    subscriber.add(() => {
      unlisten?.()
      this.#stopReading()
    })
    const running = settings.share ? this.#share(name, after) : this.#readWhole(after)
    this.ended = running.catch((error: unknown) => this.#fail(error)).then(() => this.#allEnded())
  }

  /** Whether it has stopped reading. Entries that were received may still be acknowledged. */
  get isStopped(): boolean {
    return this.#stop.signal.aborted
  }

  /** Completes the subscription, saves the acknowledgements and releases its names. Rejects if they could not be saved. */
  async finish(): Promise<void> {
    this.#stopReading()
    this.#subscriber.complete()
    const finished = await Promise.allSettled(Array.from(this.#readers, (reader) => this.#finished(reader)))
    await this.ended
    for (const result of finished) if (result.status === 'rejected') throw result.reason
  }

  async #finished(reader: ConsumerReader<Type>): Promise<void> {
    try {
      await reader.finish()
    } catch (error) {
      // The reader that has taken the partition over emits again what was not saved.
      if (!this.#settings.share || !(error instanceof FencedError)) throw error
    }
  }

  /** The one reader of a consumer that is not shared. */
  async #readWhole(after: Promise<void> | undefined): Promise<void> {
    this.#begin(undefined, after, async () => {
      await checkWhole(this.#store, this.#name)
      return true
    })
  }

  /** A reader for each partition, while this open log owns it. */
  async #share(name: string, after: Promise<void> | undefined): Promise<void> {
    const { signal } = this.#stop
    await after
    const { sharing } = this.#store
    const partitions = await sharing.partitions()
    if (signal.aborted) return
    if (partitions.count === 1) return void this.#begin(undefined)
    const { startAt, wait } = this.#settings
    const effects = this.#effects
    await divide({
      store: this.#store,
      name,
      partitions,
      startAt,
      effects: effects && (() => effects.create()),
      wait: wait === undefined ? signal : AbortSignal.any([wait, signal]),
    })
    for await (const own of sharing.share(this.#name, partitions.count, signal)) {
      this.#own = own
      for (let partition = 0; partition < partitions.count; partition++) {
        const reader = this.#latest.get(partName(this.#name, partition))
        if (!own.has(partition)) reader?.drain()
        else if (reader?.isStopped !== false) this.#begin(partition, reader?.ended)
      }
    }
  }

  #begin(partition: number | undefined, after?: Promise<void>, isWanted?: () => Promise<boolean>): void {
    if (this.isStopped) return
    const name = partition === undefined ? this.#name : partName(this.#name, partition)
    const { share } = this.#settings
    // Another member may be about to release a partition, at any time.
    const given = partition === undefined ? this.#settings.wait : undefined
    const wait = given ?? (share ? new AbortController().signal : undefined)
    const effects = this.#effects?.create()
    const fail = (error: unknown) => {
      // Another open log has taken the partition over, for instance while this process was suspended: wait for a turn again.
      if (partition !== undefined && error instanceof FencedError) {
        reader.stop()
        if (this.#own.has(partition) && this.#latest.get(name) === reader)
          this.#begin(partition, reader.ended)
        return
      }
      this.#subscriber.error(error)
      this.#stopReading()
    }
    const reader: ConsumerReader<Type> = new ConsumerReader<Type>({
      store: this.#store,
      name,
      consumer: this.#name,
      partition,
      settings: { ...this.#settings, wait },
      limit: this.#limit,
      gate: this.#gate,
      next: (entry) => this.#subscriber.next(entry),
      fail,
      after,
      effects,
      ...(isWanted && { isWanted }),
    })
    if (effects !== undefined)
      this.#effects?.assign(effects, reader, partition === undefined ? undefined : fail)
    this.#latest.set(name, reader)
    this.#readers.add(reader)
    void reader.ended.then(() => {
      if (!this.isStopped) this.#readers.delete(reader)
    })
  }

  /** Resolves when no reader is left. */
  async #allEnded(): Promise<void> {
    await Promise.all(Array.from(this.#readers, ({ ended }) => ended))
  }

  #fail(error: unknown): void {
    const isExpected = error === this.#stop.signal.reason || error instanceof LogClosedError
    if (!this.isStopped || !isExpected) this.#subscriber.error(error)
    this.#stopReading()
  }

  #stopReading(): void {
    this.#stop.abort()
    for (const reader of this.#readers) reader.stop()
  }
}
