import type { ResearchClient } from 'rivulet'
import { firstValueFrom } from 'rxjs'

/**
 * The groups that are done. Reads every resource once, so that a wrong address or id fails immediately; a stream would
 * reconnect forever.
 */
export async function doneGroups(
  client: ResearchClient,
  monitors: readonly string[],
  groups: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const [found] = await Promise.all([
    Promise.all(groups.map((id) => firstValueFrom(client.taskGroups.get(id, { signal })))),
    Promise.all(monitors.map((id) => firstValueFrom(client.monitors.get(id, { signal })))),
  ])
  const done = found.filter(({ status }) => !status.is_active && status.num_task_runs > 0)
  return new Set(done.map(({ taskgroup_id }) => taskgroup_id))
}
