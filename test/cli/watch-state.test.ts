import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { signedRequest } from 'rivulet/webhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeldRuns, research } from '../e2e/research.ts'
import type { Research } from '../e2e/research.ts'
import { rivulet } from './command.ts'

const SECRET = 'whsec_of_the_test'

/** The path of a state file, removed after the test. */
async function stateFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-state-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'watch.db')
}

/** Watches a group with the real command. */
function watchGroup({ service }: Research, id: string, state: string) {
  return rivulet(['watch', '--group', id, '--json', '--state', state], {
    RIVULET_BASE_URL: service.url ?? '',
    RIVULET_API_KEY: service.apiKey,
  })
}

/** Watches webhooks with the real command, which needs no service for that. */
function watchWebhooks(state: string) {
  const watch = rivulet(['watch', '--webhook-port', '0', '--json', '--state', state], {
    RIVULET_BASE_URL: 'http://127.0.0.1:1',
    RIVULET_API_KEY: 'key_of_the_test',
    RIVULET_WEBHOOK_SECRET: SECRET,
  })
  const listening = async (): Promise<string> =>
    JSON.parse(await watch.stderrLine((line) => line.includes('receiving webhooks'))).url
  return { watch, listening }
}

/** Sends the webhook of a failed run, always as the same delivery. */
async function postFailure(url: string, run_id: string): Promise<number> {
  const run = { run_id, status: 'failed', is_active: false, error: { message: 'no source' } }
  const payload = { type: 'task_run.status', timestamp: '2026-01-01T00:00:00Z', data: run }
  const { status } = await fetch(await signedRequest(url, payload, { secrets: SECRET, id: `msg_${run_id}` }))
  return status
}

/** The identities of the events in lines of NDJSON. Throws for a truncated line. */
function identities(ndjson: string): string[] {
  const events = ndjson.split('\n').slice(0, -1)
  return events.map((line) => {
    const { type, source, id } = JSON.parse(line)
    return `${type} ${source} ${id}`
  })
}

const runs = (events: readonly string[]) => events.filter((event) => event.startsWith('task_run.state'))

describe('rivulet watch --state', () => {
  it('resumes after the last line when it was stopped, each event once', async () => {
    const both = await research()
    // Far more than the buffers between the two processes: without a reader, the command pauses.
    const inputs = Array.from({ length: 400 }, (_, n) => `question ${n} ${'x'.repeat(8_000)}`)
    const id = await both.group(...inputs)
    const state = await stateFile()

    const first = watchGroup(both, id, state)
    await first.stdoutLine()
    first.child.stdout.pause()
    first.child.kill('SIGTERM')
    first.child.stdout.resume()
    const stopped = await first.ended
    const ended = await watchGroup(both, id, state).ended

    const printed = [...identities(stopped.stdout), ...identities(ended.stdout)]
    expect(stopped.code).toBe(143)
    expect(ended.code).toBe(0)
    expect(runs(printed)).toHaveLength(400)
    expect(new Set(printed).size).toBe(printed.length)
  })

  it('repeats at most one line when it was killed, and locks its file', async () => {
    const processor = new HeldRuns()
    const both = await research({ processor })
    const id = await both.group('a', 'b', 'c')
    const state = await stateFile()
    const first = watchGroup(both, id, state)
    await first.stdoutLine()

    const refused = await watchGroup(both, id, state).ended
    const run = first.stdoutLine((line) => line.includes('task_run.state'))
    processor.release()
    await run
    first.child.kill('SIGKILL')
    const killed = await first.ended
    const ended = await watchGroup(both, id, state).ended

    const printed = [...identities(killed.stdout), ...identities(ended.stdout)]
    expect(refused).toMatchObject({ code: 6, stdout: '' })
    expect(refused.stderr).toContain(`the checkpoint in ${state} is in use by process ${first.child.pid}`)
    expect(killed.code).toBe('SIGKILL')
    expect(ended.code).toBe(0)
    expect(new Set(runs(printed)).size).toBe(3)
    expect(printed.length - new Set(printed).size).toBeLessThanOrEqual(1)
  })

  it('prints a webhook once when it is repeated after a restart', async () => {
    const state = await stateFile()
    const first = watchWebhooks(state)
    const line = first.watch.stdoutLine()
    await postFailure(await first.listening(), 'trun_1')
    await line
    first.watch.child.kill('SIGTERM')
    const stopped = await first.watch.ended

    const second = watchWebhooks(state)
    const next = second.watch.stdoutLine()
    const url = await second.listening()
    const again = await postFailure(url, 'trun_1')
    await postFailure(url, 'trun_2')

    expect(stopped).toMatchObject({ code: 143, stdout: expect.stringContaining('trun_1') })
    expect(again).toBe(204)
    expect(JSON.parse(await next)).toMatchObject({ id: 'trun_2:failed' })
  })

  it('does not change a file that is not a state file, and prints what to do', async () => {
    const state = await stateFile()
    await writeFile(state, 'These are my notes, and no database. '.repeat(200))
    const before = await readFile(state)

    const { code, stdout, stderr } = await watchWebhooks(state).watch.ended

    expect(code).toBe(7)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^rivulet: .*watch\.db is damaged or no SQLite database .* name another file.*\n$/)
    expect(await readFile(state)).toEqual(before)
  })
})
