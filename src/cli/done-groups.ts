import type { ResearchClient } from 'rivulet'
import { firstValueFrom } from 'rxjs'
import type { WatchedIds } from './source-options.ts'

/**
 * The groups that are done. Reads every resource once, so that a wrong address or id fails immediately; a stream would
 * reconnect forever.
 */
export async function doneGroups(
  client: ResearchClient,
  { monitors, taskGroups, runs, findAlls }: WatchedIds,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const [found] = await Promise.all([
    Promise.all(taskGroups.map((id) => firstValueFrom(client.taskGroups.get(id, { signal })))),
    Promise.all(monitors.map((id) => firstValueFrom(client.monitors.get(id, { signal })))),
    Promise.all(runs.map((id) => firstValueFrom(client.tasks.get(id, { signal })))),
    Promise.all(findAlls.map((id) => firstValueFrom(client.findAll.get(id, { signal })))),
  ])
  const done = found.filter(({ status }) => !status.is_active && status.num_task_runs > 0)
  return new Set(done.map(({ taskgroup_id }) => taskgroup_id))
}
