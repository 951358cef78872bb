import { createClient, NotFoundError } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { lastValueFrom, toArray } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { answer, openStream, serve, sse } from '../../support/serve.ts'

/** A service that has the runs of the group `g` under this prefix alone. */
async function serviceAt(prefix: '/v1' | '/v1beta') {
  const streams: string[] = []
  let added = 0
  const baseUrl = await serve((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const status = () => ({
      is_active: false,
      num_task_runs: added,
      task_run_status_counts: { completed: added },
    })
    if (request.method === 'POST') {
      added += 1
      return answer(response, { status: status(), run_ids: ['r'], run_cursor: null, event_cursor: null })
    }
    if (pathname === '/v1/tasks/groups/g') return answer(response, { taskgroup_id: 'g', status: status() })
    streams.push(pathname)
    const isEvents = pathname === '/v1/tasks/groups/g/events'
    if (pathname !== `${prefix}/tasks/groups/g/runs` && !isEvents)
      return answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, 404)
    openStream(response)
    const run = { run_id: 'r', status: 'completed', is_active: false, processor: 'base' }
    const state = { type: 'task_run.state', event_id: '1', run }
    const event = isEvents ? { ...state, type: 'task_group_status', status: status() } : state
    response.end(sse(event))
  })
  return { client: createClient({ baseUrl, apiKey: 'key', initialDelay: 0 }), streams }
}

describe("a group's runs", () => {
  it.each<[string, (client: ResearchClient) => Observable<unknown>]>([
    ['runs', (client) => client.taskGroups.runs('g')],
    ['execute', (client) => client.taskGroups.execute('g', [{ input: 'x', processor: 'base' }])],
    ['watch', (client) => client.watch({ taskGroups: ['g'] })],
  ])('are read by %s where the service has them under /v1 alone, which is remembered', async (name, read) => {
    const { client, streams } = await serviceAt('/v1')
    if (name !== 'execute') {
      await client.taskGroups.addRuns('g', { inputs: [{ input: 'x', processor: 'base' }] })
    }

    const first = await lastValueFrom(read(client).pipe(toArray()))
    if (name !== 'execute') await lastValueFrom(read(client))

    expect(JSON.stringify(first)).toContain('completed')
    const asked = streams.filter((path) => path.endsWith('/runs'))
    expect(asked[0]).toBe('/v1beta/tasks/groups/g/runs')
    expect(asked.slice(1)).not.toContain('/v1beta/tasks/groups/g/runs')
  })

  it('are asked for at the path of the interface first, and at the other one only after a 404', async () => {
    const { client, streams } = await serviceAt('/v1beta')
    await client.taskGroups.addRuns('g', { inputs: [{ input: 'x', processor: 'base' }] })

    await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    expect(new Set(streams)).toEqual(new Set(['/v1beta/tasks/groups/g/runs']))
  })

  it('are a NotFoundError if neither path has them, after one request to each', async () => {
    const { client, streams } = await serviceAt('/v1')

    const runs = lastValueFrom(client.taskGroups.runs('none'))

    await expect(runs).rejects.toBeInstanceOf(NotFoundError)
    expect(streams).toEqual(['/v1beta/tasks/groups/none/runs', '/v1/tasks/groups/none/runs'])
  })
})
