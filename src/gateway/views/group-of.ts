import { isObject, isText } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { idOfSource } from './resource.ts'

/** The id of the group that an event is about: from its source, or from its run. Undefined for none. */
export function groupOf(event: ResearchEvent): string | undefined {
  if (event.type !== 'task_run.state') return idOfSource(event.source, '/v1/tasks/groups/')
  const data: unknown = event.data
  const run = isObject(data) ? data['run'] : undefined
  const group = isObject(run) ? run['taskgroup_id'] : undefined
  return isText(group) ? group : undefined
}
