import type { OperatorFunction } from 'rxjs'
import { batchesOf } from '../../../operators/batch.ts'
import type { BatchOptions } from '../../../operators/batch.ts'
import { deliver } from '../../../operators/deliver.ts'
import type { DeliverOptions } from '../../../operators/deliver.ts'
import { acknowledgerOf, deadLetter } from '../../protocol/acknowledgement.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { retryableOf } from '../../protocol/backoff.ts'
import { ConsumerError, LogError } from '../errors.ts'
import type { Entry } from '../store/contract.ts'
import { ConsumerReader } from './consumer-reader.ts'
import { ConsumerEffects, hasEffects } from './effects.ts'
import type { EffectHandler } from './effects.ts'

/** A handler of a job, which is called with an entry or with a batch. */
export type JobHandler<Given> =
  | ((given: Given, signal: AbortSignal) => void | PromiseLike<unknown>)
  | EffectHandler<Given>

type BatchOf<E> = readonly [E, ...E[]]

/** What the handler of a job is called with. */
type Delivered<E> = E | BatchOf<E>

type DeadLetters<T> = Exclude<NonNullable<DeliverOptions<T>['deadLetters']>, 'log'>

interface DeliveryPlan<E> {
  /** The consumer. */
  readonly name: string
  /** A {@link JobHandler}, of batches with `batching` and of entries otherwise. */
  readonly handler: unknown
  readonly delivery: DeliverOptions<E>
  readonly batching: BatchOptions<E> | undefined
  /** The handler with calls that the observers of the log see, each with its entry or the first entry of its batch. */
  readonly observed: (handle: Handler<E>, entryOf: (given: Delivered<E>) => E) => Handler<E>
}

/** A handler of entries or of batches. */
type Handler<E> = (given: Delivered<E>, signal: AbortSignal) => void | PromiseLike<unknown>

/** Delivers the entries of a consumer to the handler of a job, one by one or in batches. */
export function consumerDelivery<E extends Entry>({
  name,
  handler,
  delivery: { key, deadLetters, ...delivery },
  batching,
  observed,
}: DeliveryPlan<E>) {
  const effects = hasEffects<Delivered<E>>(handler) ? new ConsumerEffects(handler) : undefined
  const handle = observed(handlerOf(handler, effects), firstOf)
  const options = {
    ...delivery,
    ...(effects !== undefined && { retryable: effectRetryable(delivery.retryable) }),
    deadLetters: jobDeadLetters(name, deadLetters, effects),
  }
  let operator: OperatorFunction<E, unknown>
  if (batching === undefined) {
    const concurrency = delivery.concurrency ?? effects?.concurrency
    operator = deliver<E>(handle, {
      ...options,
      ...(key !== undefined && { key }),
      ...(concurrency !== undefined && { concurrency }),
    })
  } else {
    const keyOf = batching.key
    const delivered = deliver<BatchOf<E>>(handle, {
      ...options,
      ...(keyOf !== undefined && { key: ([first]) => keyOf(first) }),
    })
    const collected = effects === undefined ? batching : batchesOfReaders(batching, effects)
    operator = (source) => source.pipe(batchesOf(collected, isRedelivered), delivered)
  }
  return { effects, operator }
}

function handlerOf<E extends Entry>(
  handler: unknown,
  effects: ConsumerEffects<Delivered<E>> | undefined,
): Handler<E> {
  if (effects !== undefined) {
    return (given, signal) =>
      effects.store(firstOf(given), (own) => own.handle(given, isBatch(given) ? given : [given], signal))
  }
  if (isFunction<E>(handler)) return handler
  throw new ArgumentError('handler', 'a function', handler)
}

function isFunction<E>(handler: unknown): handler is Handler<E> {
  return typeof handler === 'function'
}

/** One transaction has the effect of a batch and the cursor of its reader. */
function batchesOfReaders<E extends Entry>(
  batching: BatchOptions<E>,
  effects: ConsumerEffects<Delivered<E>>,
): BatchOptions<E> {
  return { ...batching, key: (entry) => `${effects.readerOf(entry)} ${batching.key?.(entry) ?? ''}` }
}

/** A dead letter that is handed out again has failed before, and comes alone. */
function isRedelivered(entry: Entry): boolean {
  const reader = acknowledgerOf(entry)
  return reader instanceof ConsumerReader && reader.isRedelivered(entry.position)
}

/** A failure of the log or of the database stops a job with effects: the entry has not caused it. */
function effectRetryable(
  retryable = (error: unknown) => retryableOf(error) !== false,
): (error: unknown) => boolean {
  return (error) => (error instanceof LogError ? error.retryable : retryable(error))
}

/** Takes the entries that could not be handled, and fails if nothing else takes them. */
function jobDeadLetters<E extends Entry>(
  consumer: string,
  deadLetters: DeadLetters<E> | 'log' | undefined,
  effects: ConsumerEffects<Delivered<E>> | undefined,
): DeadLetters<Delivered<E>> {
  return {
    next({ event, error, attempts }) {
      if (effects !== undefined && error instanceof LogError) throw error
      const entry = firstOf(event)
      const failure = { error, attempts }
      // A subject without subscribers would drop the entry silently.
      if (deadLetters === undefined || (deadLetters !== 'log' && deadLetters.observed === false))
        throw new ConsumerError(consumer, entry, failure)
      if (effects !== undefined) return giveUp(effects, entry, failure, deadLetters)
      if (deadLetters === 'log') return deadLetter(entry, failure)
      return deadLetters.next({ event: entry, ...failure })
    },
  }
}

async function giveUp<E extends Entry>(
  effects: ConsumerEffects<Delivered<E>>,
  entry: E,
  failure: { readonly error: unknown; readonly attempts: number },
  deadLetters: DeadLetters<E> | 'log',
): Promise<void> {
  if (deadLetters === 'log') {
    await effects.giveUp(entry, failure)
    return deadLetter(entry, failure)
  }
  await deadLetters.next({ event: entry, ...failure })
  await effects.giveUp(entry, undefined)
}

function firstOf<E>(given: Delivered<E>): E {
  return isBatch(given) ? given[0] : given
}

function isBatch<E>(given: Delivered<E>): given is BatchOf<E> {
  return Array.isArray(given)
}
