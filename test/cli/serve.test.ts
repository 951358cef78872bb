import { join } from 'node:path'
import { createClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { modelServer } from '../service/model/model-server.ts'
import { html, site } from '../service/live-documents/site.ts'
import { DOCUMENTS, folderOf, rivulet, serveDocuments } from './command.ts'

describe('rivulet serve', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'prints its address, serves, and ends cleanly at %s',
    async (signal) => {
      const service = rivulet(['serve', '--docs', await folderOf(DOCUMENTS)], {
        RIVULET_API_KEY: 'key_of_the_test',
      })
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

  it.each([
    ['is not used any more', 0, true],
    ['still signs', 86_400_000, true],
    ['was not rotated', undefined, false],
  ])(
    'warns of a webhook secret in the environment that a rotation has replaced: it %s',
    async (_, overlap, warns) => {
      const folder = await folderOf(DOCUMENTS)
      const data = join(await folderOf({}), 'service.db')
      const earlier = await createResearchService({ docs: folder, data, webhookSecret: 'hunter2' })
      const rotated = overlap === undefined ? 'none' : earlier.rotateWebhookSecret({ overlap })
      await earlier.close()
      const service = rivulet(['serve', '--docs', folder, '--data', data], {
        RIVULET_WEBHOOK_SECRET: 'hunter2',
      })
      await service.stdoutLine()
      service.child.kill('SIGTERM')
      const { code, stdout, stderr } = await service.ended

      expect(code).toBe(0)
      expect(stderr.includes('a rotation has replaced the secret in RIVULET_WEBHOOK_SECRET')).toBe(warns)
      for (const secret of ['hunter2', rotated]) expect(stdout + stderr).not.toContain(secret)
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

  it('has the quotas, the credit and the beta header of its options', async () => {
    const { env, printed } = await serveDocuments('--no-quotas', '--credit', '0', '--beta-header', 'own-beta')
    const post = (path: string, body: object, headers: object = {}) =>
      fetch(`${env.RIVULET_BASE_URL}${path}`, {
        method: 'POST',
        headers: { 'x-api-key': printed.api_key, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    const run = await post('/v1/tasks/runs', { input: 'x', processor: 'base' })
    const ingest = (header: string) =>
      post('/v1beta/findall/ingest', { objective: 'libraries' }, { [header]: 'findall-2025-09-15' })
    const betas = await Promise.all([ingest('own-beta'), ingest('service-beta')])

    expect(run.status).toBe(402)
    expect(betas.map(({ status }) => status)).toEqual([200, 422])
  })

  it.each([['--no-quotas'], []])(
    'counts requests, except with the option for that: %s',
    async (...options: string[]) => {
      const { env, printed } = await serveDocuments(...options)
      const headers = { 'x-api-key': printed.api_key, 'service-beta': 'findall-2025-09-15' }
      const create = () =>
        fetch(`${env.RIVULET_BASE_URL}/v1beta/findall/runs`, { method: 'POST', headers, body: '{}' })
      const statuses = await Promise.all(Array.from({ length: 301 }, async () => (await create()).status))

      expect(statuses.includes(429)).toBe(options.length === 0)
    },
  )

  it.each([
    ['--credit', '-1', 'Expected a whole number'],
    ['--credit', 'many', 'Expected a whole number'],
    ['--beta-header', 'two words', 'Expected the name of a header'],
  ])('refuses %s %s', async (option, value, message) => {
    const { code, stderr } = await rivulet(['serve', option, value]).ended

    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })

  it('has its answers written by a model, and never prints its key', async () => {
    const model = await modelServer({ answer: 'As the model says.', quotes: [] })
    const docs = await folderOf(DOCUMENTS)
    const key = 'sk-secret-of-a-model'
    const args = ['serve', '--json', '--docs', docs, '--model-url', model.url, '--model', 'tiny']
    const printed = await rivulet(args, { RIVULET_MODEL_KEY: key }).stdoutLine()
    const { url, api_key: apiKey } = JSON.parse(printed).service
    const { output } = await createClient({ baseUrl: url, apiKey }).tasks.run('What is a river?')

    expect(output.content).toBe('As the model says.')
    expect(model.received[0]?.headers.authorization).toBe(`Bearer ${key}`)
    expect(printed).not.toContain(key)
  })

  it('needs the URL and the name of a model together', async () => {
    const { code, stderr } = await rivulet(['serve', '--model', 'tiny']).ended

    expect(code).toBe(2)
    expect(stderr).toContain('--model-url and --model go together')
  })

  it('serves the pages of a source, and logs when they were requested', async () => {
    const pages = await site({ '/': html('The rivulet of a page.') })
    const broken = await site({ '/feed?token=hunter2': { status: 500 } })
    const secret = `${broken.url}/feed?token=hunter2`
    const args = ['serve', '--json', '--source', pages.url, '--source', secret, '--allow-private-addresses']
    const service = rivulet(args)
    const { service: printed } = JSON.parse(await service.stdoutLine())
    expect(JSON.parse(await service.stderrLine())).toMatchObject({
      error: expect.stringContaining('/feed?… cannot be read completely'),
    })
    expect(JSON.parse(await service.stderrLine())).toMatchObject({
      documents: 1,
      sources: [
        { url: `${pages.url}/`, pages: 1, failing: 0 },
        { url: `${broken.url}/feed?…`, pages: 0, failing: 1, last_error: 'http_500' },
      ],
      msg: 'sources were requested',
    })

    const client = createClient({ baseUrl: printed.url, apiKey: printed.api_key })
    const { results } = await firstValueFrom(client.search({ search_queries: ['rivulet'] }))

    expect(results.map(({ url }) => url)).toEqual([`${pages.url}/`])
  })

  it('sends the header in a variable of the environment to its origin, and prints it nowhere', async () => {
    const wiki = await site({ '/': html('The rivulet of a page.') })
    const args = ['serve', '--json', '--source', wiki.url, '--allow-private-addresses']
    const service = rivulet([...args, '--source-header-env', `${wiki.url}=WIKI_AUTH`], {
      WIKI_AUTH: 'Authorization: Bearer hunter2',
    })
    const printed = [await service.stdoutLine(), await service.stderrLine()].join('')

    expect(wiki.requests[0]?.headers.authorization).toBe('Bearer hunter2')
    expect(printed).not.toContain('hunter2')
  })

  it('refuses a variable that has no header, without its value', async () => {
    const args = [
      'serve',
      '--source',
      'https://wiki.example/',
      '--source-header-env',
      'https://wiki.example=X',
    ]
    const { code, stderr } = await rivulet(args, { X: 'hunter2' }).ended

    expect(code).toBe(2)
    expect(stderr).toContain('X must be a header')
    expect(stderr).not.toContain('hunter2')
  })

  it.each([
    ['a variable that is not set', 'https://wiki.example=UNSET', 'UNSET is not set'],
    ['an origin without a source', 'https://other.example=X', 'https://other.example, but no --source has'],
  ])('names %s', async (_, given, message) => {
    const args = ['serve', '--source', 'https://wiki.example/', '--source-header-env', given]
    const { code, stderr } = await rivulet(args, { X: 'X-Key: hunter2' }).ended

    expect(code).toBe(2)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('hunter2')
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
      rivulet(['search', 'solid electrolyte', '--limit', '1', '--json'], env).ended,
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
