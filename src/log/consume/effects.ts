import type { DeliverOptions } from '../../../operators/deliver.ts'
import { acknowledgerOf, AcknowledgementError, deadLetter } from '../../protocol/acknowledgement.ts'
import type { Acknowledger } from '../../protocol/acknowledgement.ts'
import { retryableOf } from '../../protocol/backoff.ts'
import type { Entry, Fence, Position, ReaderState } from '../store/contract.ts'
import { deadLetterError } from './dead-letter-error.ts'
import type { NewDeadLetter, Redelivery } from '../store/dead-letter-store.ts'
import type { EffectState, SentDeadLetters } from '../store/effect-store.ts'
import { LogError } from '../errors.ts'
import type { FencedError } from '../errors.ts'

/** The property of a handler whose effects are stored together with the cursor of its consumer. */
export const EFFECTS: unique symbol = Symbol('effects')

/** A handler for `log.consume` whose effects happen exactly once, as `exactlyOnceIn` makes it, and `exactlyOnce` of `rivulet/log/sqlite`. */
export interface EffectHandler<E> {
  /** @hidden */
  readonly [EFFECTS]: () => Effects<E>
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

/** The effects of one consumer, and its cursor beside them: each effect and the cursor behind it are one transaction. */
export interface Effects<E> {
  /** Default number of entries in flight. */
  readonly concurrency: number
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
  /** Prepares and applies the effect of an entry. */
  handle(entry: E, signal: AbortSignal): Promise<void>
  /** Acknowledges an entry without its effect, and keeps its dead letter until {@link sent}. */
  giveUp(position: Position, deadLetter: NewDeadLetter | undefined): Promise<void>
  /** Notes that the log has these new dead letters, and no longer has the redelivered ones that were handled. */
  sent(saved: SentDeadLetters): void
  /** Stores what the consumer has acknowledged or skipped. */
  save(): Promise<void>
  /** The delivery of a redelivered dead letter; undefined for another entry. */
  redelivery(position: Position): Redelivery | undefined
}

/** The effects of a consumer, which has those of each of its readers. */
export class ConsumerEffects<E extends Entry> {
  /** Default number of entries in flight. */
  readonly concurrency: number
  readonly #create: () => Effects<E>
  /** Effects by the reader that takes the acknowledgements of their entries. */
  readonly #of = new WeakMap<object, Assigned<E>>()

  constructor(handler: EffectHandler<E>) {
    this.#create = handler[EFFECTS]
    this.concurrency = this.create().concurrency
  }

  /** Creates the effects of a new reader. */
  create(): Effects<E> {
    return this.#create()
  }

  /**
   * Assigns effects to the entries of a reader.
   *
   * @param onFenced Called once another process has taken the reader over. Default: the job fails.
   */
  assign(effects: Effects<E>, reader: Acknowledger, onFenced?: (error: FencedError) => void): void {
    this.#of.set(reader, { effects, onFenced })
  }

  /**
   * Stores something in the effects of an entry's reader. Also resolves if another process has taken the reader over: from then on,
   * acknowledgements are stored nowhere, and the entry belongs to the other process.
   */
  async store(entry: E, work: (effects: Effects<E>) => Promise<void>): Promise<void> {
    const reader = acknowledgerOf(entry)
    const assigned = reader && this.#of.get(reader)
    if (assigned === undefined) throw new AcknowledgementError()
    const { effects, onFenced } = assigned
    try {
      await work(effects)
    } catch (error) {
      // A FencedError that the handler throws by itself is a failure of the handler.
      const { fenced } = effects
      if (onFenced === undefined || fenced === undefined || error !== fenced) throw error
      onFenced(fenced)
    }
  }
}

/** The effects of one reader. */
interface Assigned<E> {
  readonly effects: Effects<E>
  readonly onFenced: ((error: FencedError) => void) | undefined
}

/** A destination of dead letters other than the log. */
type DeadLetterDestination<E> = Exclude<NonNullable<DeliverOptions<E>['deadLetters']>, 'log'>

/** Whether it is a handler with effects. */
export function hasEffects<E>(handler: unknown): handler is EffectHandler<E> {
  return typeof handler === 'object' && handler !== null && EFFECTS in handler
}

/** The settings of `deliver` for effects. A failure of the log or of the database stops the job: the entry has not caused it. */
export function effectDelivery<E extends Entry>(
  effects: ConsumerEffects<E>,
  delivery: DeliverOptions<E>,
): DeliverOptions<E> {
  const { retryable = (error: unknown) => retryableOf(error) !== false, deadLetters } = delivery
  return {
    ...delivery,
    concurrency: delivery.concurrency ?? effects.concurrency,
    retryable: (error) => (error instanceof LogError ? error.retryable : retryable(error)),
    ...(deadLetters !== undefined && { deadLetters: effectDeadLetters(effects, deadLetters) }),
  }
}

function effectDeadLetters<E extends Entry>(
  consumer: ConsumerEffects<E>,
  deadLetters: DeadLetterDestination<E> | 'log',
): DeadLetterDestination<E> {
  return {
    get observed() {
      return deadLetters === 'log' || deadLetters.observed !== false
    },
    async next(given) {
      const { event, error, attempts } = given
      const { position } = event
      if (error instanceof LogError) throw error
      if (deadLetters !== 'log') {
        await deadLetters.next(given)
        return consumer.store(event, (effects) => effects.giveUp(position, undefined))
      }
      await consumer.store(event, (effects) => {
        const redelivery = effects.redelivery(position)
        return effects.giveUp(position, {
          position,
          error: deadLetterError(error),
          attempts: attempts + (redelivery?.attempts ?? 0),
          ...(redelivery !== undefined && { redelivery: redelivery.number }),
          // The log has no entry for it.
          ...(event.type === 'log.gap' && { entry: event }),
        })
      })
      deadLetter(event, { error, attempts })
    },
  }
}
