import { createClient, NotFoundError } from 'rivulet'
import { expect, it } from 'vitest'
import { answer, serve } from '../../support/serve.ts'

const run = { run_id: 'r 1', status: 'running', is_active: true, processor: 'base' }
const status = {
  num_task_runs: 1,
  task_run_status_counts: {},
  is_active: true,
  status_message: '',
  modified_at: null,
}

async function groupService() {
  const lines: string[] = []
  const baseUrl = await serve((request, response) => {
    lines.push(`${request.method} ${request.url}`)
    if (request.method === 'POST')
      return answer(response, { status, run_ids: ['r'], run_cursor: '', event_cursor: '' })
    if (request.url?.endsWith('/none') === true) return answer(response, {}, 404)
    answer(response, run)
  })
  return { client: createClient({ baseUrl, apiKey: 'key' }), lines }
}

it('a run of a group is read by both ids', async () => {
  const { client, lines } = await groupService()

  expect(await client.taskGroups.getRun('g/1', 'r 1')).toEqual(run)
  expect(lines).toEqual(['GET /v1/tasks/groups/g%2F1/runs/r%201'])
  await expect(client.taskGroups.getRun('g', 'none')).rejects.toThrow(NotFoundError)
  await expect(client.taskGroups.getRun('g', 'other')).rejects.toThrow('the response is not this run')
  expect(() => client.taskGroups.getRun('g', '..')).toThrow('runId must be an id')
})

it('runs are added without a new count of the group, if asked', async () => {
  const { client, lines } = await groupService()
  const request = { inputs: [{ input: 'x' }] }

  await client.taskGroups.addRuns('g', request)
  await client.taskGroups.addRuns('g', request, { refresh_status: false })

  expect(lines).toEqual(['POST /v1/tasks/groups/g/runs', 'POST /v1/tasks/groups/g/runs?refresh_status=false'])
  expect(() => client.taskGroups.addRuns('g', request, { refresh_status: 'no' as never })).toThrow(
    'refresh_status must be a boolean',
  )
})
