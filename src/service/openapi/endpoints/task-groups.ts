import { FIELD_BASIS_BETA } from '../../../protocol/betas.ts'
import {
  addRunsQuery,
  addRunsRequest,
  createGroupRequest,
  groupEventsQuery,
  groupRunsQuery,
} from '../../../protocol/requests/tasks.ts'
import { addRunsResponse, groupRunsStreamEvent, groupStreamEvent, taskGroup } from '../answers/task-groups.ts'
import { taskRun } from '../answers/tasks.ts'
import type { Endpoint } from '../endpoint.ts'

/** The endpoints of task groups, under both prefixes (§4.3, §4.4, §4.5). */
export const taskGroupEndpoints: readonly Endpoint[] = [
  ...endpointsUnder('/v1', ''),
  ...endpointsUnder('/v1beta', 'Beta'),
]

function endpointsUnder(prefix: string, suffix: string): Endpoint[] {
  const common = { area: 'Task groups', hasIssues: true } as const
  const groups = `${prefix}/tasks/groups`
  return [
    {
      ...common,
      method: 'POST',
      path: groups,
      operationId: `createGroup${suffix}`,
      summary: 'Creates a group; beyond the interface document',
      body: { name: 'CreateTaskGroupRequest', schema: createGroupRequest, isOptional: true },
      answer: taskGroup,
    },
    {
      ...common,
      method: 'GET',
      path: `${groups}/:taskgroup_id`,
      operationId: `getGroup${suffix}`,
      summary: 'Returns a group; beyond the interface document',
      answer: taskGroup,
    },
    {
      ...common,
      method: 'GET',
      path: `${groups}/:taskgroup_id/runs/:run_id`,
      operationId: `getRunOfGroup${suffix}`,
      summary: 'Returns a run of a group; beyond the interface document',
      answer: taskRun,
    },
    {
      ...common,
      method: 'POST',
      path: `${groups}/:taskgroup_id/runs`,
      operationId: `addRuns${suffix}`,
      summary: 'Adds runs to a group (§4.3)',
      query: addRunsQuery,
      body: { name: 'AddRunsRequest', schema: addRunsRequest },
      answer: addRunsResponse,
      quota: 'runs',
      errors: { 402: 'Active runs reserve the credit', 503: 'Too many schemas wait for a check' },
      betas: [FIELD_BASIS_BETA],
    },
    {
      ...common,
      method: 'GET',
      path: `${groups}/:taskgroup_id/events`,
      operationId: `streamGroup${suffix}`,
      summary: 'Streams the status of a group and the ends of its runs (§4.4)',
      query: groupEventsQuery,
      events: groupStreamEvent,
    },
    {
      ...common,
      method: 'GET',
      path: `${groups}/:taskgroup_id/runs`,
      operationId: `streamRunsOfGroup${suffix}`,
      summary: 'Streams the ends of the runs of a group (§4.5)',
      query: groupRunsQuery,
      events: groupRunsStreamEvent,
    },
  ]
}
