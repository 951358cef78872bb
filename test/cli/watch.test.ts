import { signedRequest } from 'rivulet/webhooks'
import { describe, expect, it } from 'vitest'
import { rivulet } from './command.ts'

const SECRET = 'whsec_of_the_test'

/** Watches webhooks, for which no service is needed. */
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
  it('prints what webhooks say, one event a line, until Ctrl-C', async () => {
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

  it('ends quietly when nobody reads its output any more', async () => {
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
})
