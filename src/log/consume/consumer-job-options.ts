import { checkBatchOptions } from '../../../operators/batch.ts'
import type { BatchOptions } from '../../../operators/batch.ts'
import { DELIVER_OPTIONS } from '../../../operators/deliver.ts'
import type { DeliverOptions } from '../../../operators/deliver.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkInteger, checkOptions, checkSignal } from '../../protocol/check.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import { CONSUMER_OPTIONS, consumerSettings, MAX_UNACKNOWLEDGED } from './consumer-options.ts'
import type { ConsumerOptions, ConsumerSettings, EntryOf } from './consumer-options.ts'

/** Settings of {@link EventLog.consume}: those of a consumer and of `deliver`. */
export interface ConsumerJobOptions<Type extends ResearchEventType = ResearchEventType>
  extends ConsumerOptions<Type>, Omit<DeliverOptions<EntryOf<Type>>, 'gate' | 'scheduler'> {}

/**
 * The batches of a job's handler, collected as `batch` of `rivulet/operators` does. `size` is at most `maxUnacknowledged`, whose default is four
 * times `size` then, from 1,000 to 5,000. With `key`, the batches of each key are handled one at a time and in order. `concurrency`,
 * `highWaterMark` and `retries` of the job are of batches. A dead letter that is handed out again comes alone.
 */
export interface ConsumerBatches<
  Type extends ResearchEventType,
  Size extends number | undefined,
> extends Omit<BatchOptions<EntryOf<Type>>, 'size' | 'scheduler'> {
  /** Maximum number of entries of a batch, at least 1. */
  readonly size: Size
}

/** The settings of a job with or without batches. */
export type AnyJobOptions<Type extends ResearchEventType> = ConsumerJobOptions<Type> & {
  readonly batch?: ConsumerBatches<Type, number>
}

/** Both have a scheduler. */
const OPTIONS = [...new Set([...CONSUMER_OPTIONS, ...DELIVER_OPTIONS, 'batch'])].filter(
  (name) => name !== 'gate',
)

/** The settings of a job, by what they are for. */
export interface JobSettings<Type extends ResearchEventType> {
  readonly reading: ConsumerSettings<Type>
  readonly delivery: DeliverOptions<EntryOf<Type>>
  readonly batching: BatchOptions<EntryOf<Type>> | undefined
}

/** The settings with their defaults. Throws an ArgumentError for an unknown option or an invalid one. */
export function jobSettings<Type extends ResearchEventType>(
  name: string,
  options: AnyJobOptions<Type>,
): JobSettings<Type> {
  checkOptions('options', options, OPTIONS)
  if (options.signal !== undefined) checkSignal('signal', options.signal)
  const {
    types,
    where,
    startAt,
    revisions,
    maxUnacknowledged,
    stallTimeout,
    wait,
    share,
    scheduler,
    batch,
    ...delivery
  } = options
  if (batch !== undefined) {
    checkBatchOptions('batch', batch, ['scheduler'])
    // Entries of a batch may have several keys.
    if (delivery.key !== undefined) throw new ArgumentError('key', 'within `batch`', delivery.key)
  }
  const most = maxUnacknowledged ?? (batch && mostUnacknowledged(batch.size))
  const timing = scheduler !== undefined && { scheduler }
  const reading = consumerSettings(name, {
    ...(types !== undefined && { types }),
    ...(where !== undefined && { where }),
    ...(startAt !== undefined && { startAt }),
    ...(revisions !== undefined && { revisions }),
    ...(most !== undefined && { maxUnacknowledged: most }),
    ...(stallTimeout !== undefined && { stallTimeout }),
    ...(wait !== undefined && { wait }),
    ...(share !== undefined && { share }),
    ...timing,
  })
  // Such a batch would never be full.
  if (batch !== undefined) checkInteger('batch.size', batch.size, 1, reading.maxUnacknowledged)
  return { reading, delivery: { ...delivery, ...timing }, batching: batch && { ...batch, ...timing } }
}

/** Some batches can be handled while another one is filled. */
function mostUnacknowledged(size: number): number {
  return Math.min(MAX_UNACKNOWLEDGED, Math.max(1_000, 4 * size))
}
