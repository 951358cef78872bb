import type {
  FindAllMemory,
  Memory,
  MemoryRetrieveResponse,
  MonitorMemory,
  MonitorMemoryEvent,
  TaskMemory,
} from '../../../protocol/memory.ts'
import * as s from './kinds.ts'

/* All of this file is beyond the interface document. */

const common = { id: s.id, input_excerpt: s.text, updated_at: s.timestamp }
const event = s.object<MonitorMemoryEvent>(
  { event_id: s.id, event_group_id: s.id, detected_at: s.timestamp, excerpt: s.text },
  {},
)

/** The response of `POST /v1beta/memory/retrieve`. */
export const memoryRetrieveResponse = s.component(
  'MemoryRetrieveResponse',
  s.object<MemoryRetrieveResponse>(
    {
      results: s.list(
        s.variants<Memory, 'kind'>({
          task: s.component(
            'TaskMemory',
            s.object<TaskMemory>({ kind: s.oneOf(['task']), ...common, output_excerpt: s.text }, {}),
          ),
          monitor: s.component(
            'MonitorMemory',
            s.object<MonitorMemory>(
              { kind: s.oneOf(['monitor']), ...common, status: s.openOneOf<string>(['active', 'cancelled']) },
              { matched_events: s.orNull(s.list(event)) },
            ),
          ),
          findall: s.component(
            'FindAllMemory',
            s.object<FindAllMemory>({ kind: s.oneOf(['findall']), ...common, matched_count: s.count }, {}),
          ),
        }),
      ),
    },
    {},
  ),
)
