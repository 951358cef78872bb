import { createClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'
import type { Processor } from 'rivulet/service'
import { signedRequest } from 'rivulet/webhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { research } from '../e2e/research.ts'
import { LIBRARIES, PACKAGES } from '../service/find-all/caller.ts'
import { DOCUMENTS, folderOf, rivulet } from './command.ts'

const SECRET = 'whsec_of_the_test'

/** Watches webhooks, which needs no service. */
async function watchWebhooks() {
  const watch = rivulet(['watch', '--webhook-port', '0', '--json'], {
    RIVULET_BASE_URL: 'http://127.0.0.1:1',
    RIVULET_API_KEY: 'key_of_the_test',
    RIVULET_WEBHOOK_SECRET: SECRET,
  })
  const { url } = JSON.parse(await watch.stderrLine((line) => line.includes('receiving webhooks')))
  const post = async (run_id: string) => {
    const run = { run_id, status: 'failed', is_active: false, error: { message: 'no source' } }
    const payload = { type: 'task_run.status', timestamp: new Date().toISOString(), data: run }
    await fetch(await signedRequest(url, payload, { secrets: SECRET }))
  }
  return { watch, post }
}

describe('rivulet watch', () => {
  it('prints the events of webhooks, one per line, until Ctrl-C', async () => {
    const { watch, post } = await watchWebhooks()
    const line = watch.stdoutLine()
    await post('trun_1')
    const event = JSON.parse(await line)
    watch.child.kill('SIGINT')
    const { code, stderr } = await watch.ended

    expect(event).toMatchObject({
      type: 'task_run.state',
      via: 'webhook',
      data: { run: { run_id: 'trun_1' } },
    })
    expect(code).toBe(130)
    expect(stderr).not.toContain(SECRET)
  })

  it('prints the progress of a single run and the candidates of a FindAll run, and ends with both', async () => {
    const { service, client } = await research({ files: PACKAGES })
    const { run_id } = await client.tasks.create({ input: 'Why?', processor: 'base', enable_events: true })
    const { findall_id } = await client.findAll.create(LIBRARIES)
    const { code, stdout } = await rivulet(['watch', '--run', run_id, '--find-all', findall_id], {
      RIVULET_BASE_URL: service.url ?? '',
      RIVULET_API_KEY: service.apiKey,
    }).ended

    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`exec_status  ${run_id}: The run has started`))
    expect(stdout).toMatch(new RegExp(`✔ completed  ${run_id}: about "Why\\?"`))
    expect(stdout).toMatch(new RegExp(`✔ matched    ${findall_id}: `))
    expect(stdout).toMatch(new RegExp(`▸ find-all   ${findall_id}: completed \\(`))
  })

  it('ends without an error when the reader closes its output', async () => {
    const { watch, post } = await watchWebhooks()
    const line = watch.stdoutLine()
    await post('trun_1')
    await line
    watch.child.stdout.destroy()
    await post('trun_2')
    const { code, stderr } = await watch.ended

    expect(code).toBe(0)
    expect(stderr).not.toMatch(/EPIPE|rivulet:/)
  })

  it('prints a permanent failure, continues with the others, and ends with the exit code of the failure', async () => {
    const docs = await folderOf(DOCUMENTS)
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
    const processor: Processor = {
      async run() {
        await isReleased
        return { output: { type: 'text', content: 'a stream', basis: [] } }
      },
    }
    const service = await createResearchService({ docs, processor })
    onTestFinished(() => service.close())
    const env = { RIVULET_BASE_URL: await service.listen(), RIVULET_API_KEY: service.apiKey }
    const client = createClient({ baseUrl: env.RIVULET_BASE_URL, apiKey: service.apiKey })
    const inputs = [{ input: 'What is a rivulet?' }]
    const [gone, kept] = await Promise.all([client.taskGroups.create(), client.taskGroups.create()])
    await client.taskGroups.addRuns(gone.taskgroup_id, { inputs })
    await client.taskGroups.addRuns(kept.taskgroup_id, { inputs })
    service.faults.add({ kind: 'deleted-group', group: gone.taskgroup_id, after: 1 })
    const watch = rivulet(
      ['watch', '--json', '--group', gone.taskgroup_id, '--group', kept.taskgroup_id],
      env,
    )
    const failed = JSON.parse(await watch.stdoutLine((line) => line.includes('source.failed')))
    release()
    const { code, stdout } = await watch.ended

    expect(failed).toMatchObject({ data: { error: { name: 'NotFoundError', status: 404 } } })
    expect(failed.source).toContain(gone.taskgroup_id)
    expect(stdout).toContain('"a stream"')
    expect(code).toBe(4)
  })
})
