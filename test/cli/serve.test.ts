import { createClient } from 'rivulet'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { DOCUMENTS, folderOf, rivulet, serveDocuments } from './command.ts'

describe('rivulet serve', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'prints its address, serves, and ends cleanly at %s',
    async (signal) => {
      const service = rivulet(['serve', '--docs', await folderOf(DOCUMENTS), '--api-key', 'key_of_the_test'])
      const [url = ''] = (await service.stdoutLine()).match(/http:\/\/127\.0\.0\.1:\d+/) ?? []
      const client = createClient({ baseUrl: url, apiKey: 'key_of_the_test' })
      const { results } = await firstValueFrom(client.search({ search_queries: ['rivulet'] }))
      service.child.kill(signal)
      const { code, stdout, stderr } = await service.ended

      expect(results).toHaveLength(1)
      expect(code).toBe(0)
      expect(stdout + stderr).not.toContain('key_of_the_test')
    },
  )

  it('does wrong what it is told to', async () => {
    const { env } = await serveDocuments('--fault', 'status:status=503,times=1,retryAfter=0')
    const client = createClient({ baseUrl: env.RIVULET_BASE_URL, apiKey: env.RIVULET_API_KEY })
    const retried = firstValueFrom(client.diagnostics)
    await firstValueFrom(client.search({ search_queries: ['rivulet'] }))

    expect(await retried).toMatchObject({ kind: 'retry', error: { status: 503 } })
  })
})

describe('rivulet watch', () => {
  it('says at once what it watches, although nothing happens yet', async () => {
    const { env, told } = await serveDocuments()
    const client = createClient({ baseUrl: told.url, apiKey: told.api_key })
    const settings = { query: 'nothing of this kind' }
    const { monitor_id } = await firstValueFrom(
      client.monitors.create({ type: 'event_stream', frequency: '1h', settings }),
    )
    const watch = rivulet(['watch', '--monitor', monitor_id], env)
    const line = await watch.stderrLine()

    expect(JSON.parse(line)).toMatchObject({
      level: 'info',
      monitors: [monitor_id],
      msg: expect.stringMatching(/^watching/),
    })
  })
})

describe('rivulet search and watch', () => {
  it('work against a service that the environment names', async () => {
    const { env, told } = await serveDocuments()
    const client = createClient({ baseUrl: told.url, apiKey: told.api_key })
    const { taskgroup_id } = await firstValueFrom(client.taskGroups.create())
    const inputs = ['What is a rivulet?', 'What has a solid electrolyte?'].map((input) => ({ input }))
    const { run_ids } = await lastValueFrom(client.taskGroups.addRuns(taskgroup_id, { inputs }))

    const [asJson, forPeople, watched, wrongKey, missing] = await Promise.all([
      rivulet(['search', 'solid electrolyte', '--max-results', '1', '--json'], env).ended,
      rivulet(['search', 'solid electrolyte'], env).ended,
      rivulet(['watch', '--group', taskgroup_id, '--json'], env).ended,
      rivulet(['search', 'x'], { ...env, RIVULET_API_KEY: 'key_that_is_wrong' }).ended,
      rivulet(['watch', '--group', 'tgrp_missing'], env).ended,
    ])

    expect(asJson.code).toBe(0)
    expect(JSON.parse(asJson.stdout).results).toMatchObject([{ title: 'Batteries' }])
    expect(forPeople.stdout).toContain('Batteries')
    expect(forPeople.stdout).not.toContain('\u001B[')

    const events = watched.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const runs = events.filter(({ type }) => type === 'task_run.state')
    expect(watched.code).toBe(0)
    expect(runs.map(({ data }) => data.run.run_id).toSorted()).toEqual(run_ids.toSorted())
    expect(runs).toMatchObject(runs.map(() => ({ via: 'stream', data: { output: { type: 'text' } } })))

    expect(wrongKey.code).toBe(3)
    expect(wrongKey.stderr).not.toContain('key_that_is_wrong')
    expect(missing.code).toBe(4)
  })
})
