import { DELIVER_OPTIONS } from '../../../operators/deliver.ts'
import type { DeliverOptions } from '../../../operators/deliver.ts'
import { checkOptions, checkSignal } from '../../protocol/check.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import { CONSUMER_OPTIONS } from './consumer-options.ts'
import type { ConsumerOptions, EntryOf } from './consumer-options.ts'

/** Settings of {@link EventLog.consume}: those of a consumer and of `deliver`. */
export interface ConsumerJobOptions<Type extends ResearchEventType = ResearchEventType>
  extends ConsumerOptions<Type>, Omit<DeliverOptions<EntryOf<Type>>, 'gate' | 'scheduler'> {}

/** Both have a scheduler. */
const OPTIONS = [...new Set([...CONSUMER_OPTIONS, ...DELIVER_OPTIONS])].filter((name) => name !== 'gate')

/** The settings of the consumer, and those of `deliver`. Throws an ArgumentError for an option that neither has. */
export function splitOptions<Type extends ResearchEventType>(
  options: ConsumerJobOptions<Type>,
): [ConsumerOptions<Type>, DeliverOptions<EntryOf<Type>>] {
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
    ...delivery
  } = options
  return [
    {
      ...(types !== undefined && { types }),
      ...(where !== undefined && { where }),
      ...(startAt !== undefined && { startAt }),
      ...(revisions !== undefined && { revisions }),
      ...(maxUnacknowledged !== undefined && { maxUnacknowledged }),
      ...(stallTimeout !== undefined && { stallTimeout }),
      ...(wait !== undefined && { wait }),
      ...(share !== undefined && { share }),
      ...(scheduler !== undefined && { scheduler }),
    },
    { ...delivery, ...(scheduler !== undefined && { scheduler }) },
  ]
}
