import type {
  AddRunsRequest,
  CreateTaskGroupRequest,
  GroupEventsQuery,
  GroupRunsQuery,
} from '../task-group.ts'
import { RUN_STATUSES } from '../task.ts'
import type { CreateRunRequest, McpServer, RunInput, TaskSpec } from '../task.ts'
import * as s from './kinds.ts'
import { memoryScope } from './memory.ts'
import type { OptionalFields } from './schema.ts'
import { sourcePolicy } from './search.ts'

const taskSpec = s.options<TaskSpec>({
  output_schema: s.either(
    s.text(),
    s.variants(
      {
        json: s.object({ json_schema: s.json('schema') }, {}),
        text: s.options({ description: s.anyText() }),
        auto: s.options({}),
      },
      'auto',
    ),
  ),
  input_schema: s.either(s.anyText(), s.json('inputSchema')),
})

/** Tool servers that a run may call (§2.8). */
export const toolServers = s.list<McpServer>(
  s.object(
    { type: s.withDefault(s.oneOf(['url']), 'url'), url: s.webUrl, name: s.text('name') },
    {
      headers: s.record({ ...s.anyText('header'), isSecret: true }, 'headers'),
      allowed_tools: s.list(s.anyText('name'), 'tools'),
    },
  ),
  'toolServers',
)

const input = s.either(s.text(), s.json())
const processor = s.text('name')
const settings: Omit<OptionalFields<RunInput>, 'processor'> = {
  metadata: s.json('metadata'),
  memory_scope_key: memoryScope,
  source_policy: sourcePolicy,
  advanced_settings: s.options({ location: s.country }),
  task_spec: taskSpec,
  previous_interaction_id: s.anyText('name'),
  mcp_servers: toolServers,
  enable_events: s.flag,
  webhook: s.object(
    {
      url: s.webUrl,
      event_types: s.withDefault(s.list(s.openOneOf(['task_run.status']), 'choices'), ['task_run.status']),
    },
    {},
  ),
}

/** A run to add to a group (§2.8). */
export const runInput = s.object<RunInput>({ input }, { processor, ...settings })

/** The body of `POST …/groups/{taskgroup_id}/runs` (§4.3). */
export const addRunsRequest = s.object<AddRunsRequest>(
  { inputs: s.list(runInput, 'runs') },
  { default_task_spec: taskSpec },
)

/** The query of `POST …/groups/{taskgroup_id}/runs`; beyond the interface document. */
export const addRunsQuery = s.options<{ readonly refresh_status?: boolean }>({ refresh_status: s.flag })

/** The body of `POST /v1/tasks/runs`; beyond the interface document. */
export const createRunRequest = s.object<CreateRunRequest>({ input, processor }, settings)

/** The query of `GET /v1/tasks/runs/{run_id}/result`; beyond the interface document. */
export const runResultQuery = s.options<{ readonly timeout?: number }>({ timeout: s.seconds })

/** The body of `POST …/groups`; beyond the interface document. */
export const createGroupRequest = s.options<CreateTaskGroupRequest>({ metadata: s.json('metadata') })

/** The query of `GET …/groups/{taskgroup_id}/events` (§4.4). An empty `last_event_id` is the beginning of the stream. */
export const groupEventsQuery = s.options<GroupEventsQuery>({
  last_event_id: s.anyText(),
  timeout: s.seconds,
})

/** The query of `GET …/groups/{taskgroup_id}/runs` (§4.5). */
export const groupRunsQuery = s.options<GroupRunsQuery>({
  last_event_id: s.anyText(),
  status: s.oneOf(RUN_STATUSES),
  include_input: s.flag,
  include_output: s.flag,
})
