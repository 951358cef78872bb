import { acknowledgerOf, AcknowledgementError } from '../../protocol/acknowledgement.ts'
import type { Acknowledger } from '../../protocol/acknowledgement.ts'
import type { Entry, Fence, Position, ReaderState } from '../store/contract.ts'
import { deadLetterError } from './dead-letter-error.ts'
import type { NewDeadLetter, Redelivery } from '../store/dead-letter-store.ts'
import type { EffectState, SentDeadLetters } from '../store/effect-store.ts'
import type { FencedError } from '../errors.ts'

/** The property of a handler whose effects are stored together with the cursor of its consumer. */
export const EFFECTS: unique symbol = Symbol('effects')

/** A handler for `log.consume` whose effects happen exactly once, as `exactlyOnceIn` makes it, and `exactlyOnce` of `rivulet/log/sqlite`. */
export interface EffectHandler<Given> {
  /** @hidden */
  readonly [EFFECTS]: () => Effects<Given>
}

/** The consumer, as its effects see it. */
export interface EffectConsumer {
  /** The state that the consumer would have if these positions were acknowledged. */
  stateAfter(positions: ReadonlySet<Position>): ReaderState
  /** Whether it waits for the acknowledgement of this position. */
  isOpen(position: Position): boolean
  /** The delivery of a redelivered dead letter; undefined for another entry. */
  redelivery(position: Position): Redelivery | undefined
}

/** The log of the state that is taken over: this log alone, or one of which this log is a copy. */
export type EffectOrigin = 'own' | 'moved'

/** The cursor of a reader beside its effects. */
export interface EffectCursor {
  /** Name of the database, for errors. */
  readonly place: string
  /** The error with which calls reject once a later fence was seen. */
  readonly fenced: FencedError | undefined
  /** The stored state of a reader; undefined for a new one. */
  peek(reader: string): Promise<EffectState | undefined>
  /** The state of a reader in a copy of its log; undefined if there is none. */
  peekMoved(reader: string): Promise<EffectState | undefined>
  /**
   * Takes the reader over, or creates it without a state: transactions with earlier fences are refused from now on. Rejects
   * with a `FencedError` if a later one is known, or if there is no state in a copy of the log.
   */
  take(fence: Fence, consumer: EffectConsumer, from: EffectOrigin): Promise<EffectState>
  /** The positions of a reader, out of these, that are given up and not handled: see `EffectStore.givenUp`. */
  givenUp(reader: string, positions: readonly Position[]): Promise<readonly Position[]>
  /** Acknowledges an entry without its effect, and keeps its dead letter until {@link sent}. */
  giveUp(position: Position, deadLetter: NewDeadLetter | undefined): Promise<void>
  /** Notes that the log has these new dead letters, and no longer has the redelivered ones that were handled. */
  sent(saved: SentDeadLetters): void
  /** Stores what the consumer has acknowledged or skipped. */
  save(): Promise<void>
  /** The delivery of a redelivered dead letter; undefined for another entry. */
  redelivery(position: Position): Redelivery | undefined
}

/** The effects of one reader, and its cursor beside them: each effect and the cursor behind it are one transaction. */
export interface Effects<Given> extends EffectCursor {
  /** Default number of entries in flight. */
  readonly concurrency: number
  /**
   * Prepares and applies one effect.
   *
   * @param given An entry or a batch, as the effect takes it.
   * @param entries The entries that it acknowledges.
   */
  handle(given: Given, entries: readonly Entry[], signal: AbortSignal): Promise<void>
}

/** The effects of a consumer, which has those of each of its readers. */
export class ConsumerEffects<Given> {
  /** Default number of entries in flight. */
  readonly concurrency: number
  readonly #create: () => Effects<Given>
  /** Effects by the reader that takes the acknowledgements of their entries. */
  readonly #of = new WeakMap<object, Assigned<Given>>()
  #count = 0

  constructor(handler: EffectHandler<Given>) {
    this.#create = handler[EFFECTS]
    this.concurrency = this.create().concurrency
  }

  /** Creates the effects of a new reader. */
  create(): Effects<Given> {
    return this.#create()
  }

  /**
   * Assigns effects to the entries of a reader.
   *
   * @param onFenced Called once another process has taken the reader over. Default: the job fails.
   */
  assign(effects: Effects<Given>, reader: Acknowledger, onFenced?: (error: FencedError) => void): void {
    this.#of.set(reader, { effects, onFenced, number: (this.#count += 1) })
  }

  /** A name for the reader of an entry. Entries of several readers cannot have one effect. */
  readerOf(entry: Entry): string {
    return String(this.#assigned(entry).number)
  }

  /**
   * Stores something in the effects of an entry's reader. Also resolves if another process has taken the reader over: from then on,
   * acknowledgements are stored nowhere, and the entry belongs to the other process.
   */
  async store(entry: Entry, work: (effects: Effects<Given>) => Promise<void>): Promise<void> {
    const { effects, onFenced } = this.#assigned(entry)
    try {
      await work(effects)
    } catch (error) {
      // A FencedError that the handler throws by itself is a failure of the handler.
      const { fenced } = effects
      if (onFenced === undefined || fenced === undefined || error !== fenced) throw error
      onFenced(fenced)
    }
  }

  /** Acknowledges an entry without its effect, with a dead letter of the log unless it is undefined. */
  giveUp(
    entry: Entry,
    deadLetter: { readonly error: unknown; readonly attempts: number } | undefined,
  ): Promise<void> {
    const { position } = entry
    return this.store(entry, (effects) => {
      if (deadLetter === undefined) return effects.giveUp(position, undefined)
      const redelivery = effects.redelivery(position)
      return effects.giveUp(position, {
        position,
        error: deadLetterError(deadLetter.error),
        attempts: deadLetter.attempts + (redelivery?.attempts ?? 0),
        ...(redelivery !== undefined && { redelivery: redelivery.number }),
        // The log has no entry for it.
        ...(entry.type === 'log.gap' && { entry }),
      })
    })
  }

  #assigned(entry: Entry): Assigned<Given> {
    const reader = acknowledgerOf(entry)
    const assigned = reader && this.#of.get(reader)
    if (assigned === undefined) throw new AcknowledgementError()
    return assigned
  }
}

/** The effects of one reader. */
interface Assigned<Given> {
  readonly effects: Effects<Given>
  readonly onFenced: ((error: FencedError) => void) | undefined
  readonly number: number
}

/** Whether it is a handler with effects. */
export function hasEffects<Given>(handler: unknown): handler is EffectHandler<Given> {
  return typeof handler === 'object' && handler !== null && EFFECTS in handler
}
