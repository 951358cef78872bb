import { createClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
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

  it('cites the files of a folder by their URLs on its site', async () => {
    const docs = await folderOf(DOCUMENTS)
    const service = rivulet(['serve', '--json', '--site', `https://docs.example/guide=${docs}`])
    const { service: printed } = JSON.parse(await service.stdoutLine())
    const client = createClient({ baseUrl: printed.url, apiKey: printed.api_key })
    const { results } = await firstValueFrom(client.search({ search_queries: ['rivulet'] }))

    expect(results.map(({ url }) => url)).toEqual(['https://docs.example/guide/river.md'])
  })

  it('injects the given faults', async () => {
    const { env } = await serveDocuments('--fault', 'status:status=503,times=1,retryAfter=0')
    const client = createClient({ baseUrl: env.RIVULET_BASE_URL, apiKey: env.RIVULET_API_KEY })
    const retried = firstValueFrom(client.diagnostics)
    await firstValueFrom(client.search({ search_queries: ['rivulet'] }))

    expect(await retried).toMatchObject({ kind: 'retry', error: { status: 503 } })
  })
})

describe('rivulet watch', () => {
  it('logs immediately what it watches, before any event', async () => {
    const { env, printed } = await serveDocuments()
    const client = createClient({ baseUrl: printed.url, apiKey: printed.api_key })
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
  it('use the service of the environment', async () => {
    const { env, printed } = await serveDocuments()
    const client = createClient({ baseUrl: printed.url, apiKey: printed.api_key })
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

describe('rivulet watch on a group that is done', () => {
  it('prints the events of its streams in the order of time', async () => {
    const service = await createResearchService({ docs: await folderOf(DOCUMENTS), concurrency: 1 })
    onTestFinished(() => service.close())
    const env = { RIVULET_BASE_URL: await service.listen(), RIVULET_API_KEY: service.apiKey }
    const client = createClient({ baseUrl: env.RIVULET_BASE_URL, apiKey: env.RIVULET_API_KEY })
    const { taskgroup_id } = await firstValueFrom(client.taskGroups.create())
    const inputs = Array.from({ length: 20 }, (_, index) => ({ input: `What is a rivulet? ${index}` }))
    await lastValueFrom(client.taskGroups.execute(taskgroup_id, inputs))
    const { code, stdout } = await rivulet(['watch', '--group', taskgroup_id, '--json'], env).ended
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const times = events.map(({ time }) => Date.parse(time))
    const types = events.map(({ type }) => type)

    expect(code).toBe(0)
    expect(types.filter((type) => type === 'task_run.state')).toHaveLength(20)
    expect(types.lastIndexOf('task_group.status')).toBeGreaterThan(types.indexOf('task_run.state'))
    expect(types.indexOf('task_group.status')).toBeLessThan(types.lastIndexOf('task_run.state'))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })
})
