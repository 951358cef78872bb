import type { DeliverOptions } from '../../../operators/deliver.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import type { ConsumerOptions, EntryOf } from './consumer-options.ts'

/** Settings of {@link EventLog.consume}: those of a consumer and of `deliver`. */
export interface ConsumerJobOptions<Type extends ResearchEventType = ResearchEventType>
  extends ConsumerOptions<Type>, Omit<DeliverOptions<EntryOf<Type>>, 'gate' | 'scheduler'> {}

/** The settings of the consumer, and those of `deliver`. */
export function splitOptions<Type extends ResearchEventType>({
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
}: ConsumerJobOptions<Type>): [ConsumerOptions<Type>, DeliverOptions<EntryOf<Type>>] {
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
