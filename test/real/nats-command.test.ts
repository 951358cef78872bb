import { groupEvent } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { natsStore } from 'rivulet/log/nats'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { rivulet } from '../cli/command.ts'
import { research } from '../e2e/research.ts'
import { append, readAll } from '../log/conformance/fixture.ts'
import { NatsServer } from './nats/server.ts'

const PASSWORD = 'a-password-of-the-test'
const SIGNED = { RIVULET_NATS_USER: 'rivulet', RIVULET_NATS_PASSWORD: PASSWORD }

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start(`authorization { users = [{ user: rivulet, password: "${PASSWORD}" }] }`)
})

afterAll(() => server.remove())

/** The end of a run. */
function run(id: string): ResearchEvent {
  return groupEvent(
    'tgrp_1',
    {
      type: 'task_run.state',
      event_id: id,
      run: { run_id: id, status: 'completed', modified_at: null },
      output: { type: 'text', content: 'an answer', basis: [] },
    },
    'stream',
    undefined,
    Date.UTC(2026, 0, 1),
  )
}

function opened(name: string) {
  const log = natsStore({
    servers: server.url,
    name,
    credentials: { user: 'rivulet', password: PASSWORD },
  })
  onTestFinished(() => log.close())
  return log
}

/** A log with these events, and the address for the command. */
async function logOf(name: string, events: readonly ResearchEvent[]): Promise<string> {
  const log = opened(name)
  const fence = await log.claim('stream')
  await append(log, fence, ...events)
  await log.commit(await log.claim('consumer:billing'), {
    expect: null,
    cursor: await log.positionAt('start'),
    acknowledged: [],
  })
  await log.close()
  return `${server.url}/${name}`
}

describe('the command over a log on a NATS server', () => {
  it('reads its entries and its numbers, follows it, and removes a reader', async () => {
    const address = await logOf('reading', [run('trun_1'), run('trun_2')])
    const log = (...args: readonly string[]) => rivulet(['log', ...args, '--log', address, '--json'], SIGNED)

    const [read, stats, consumers, backup] = await Promise.all(
      [['read'], ['stats'], ['consumers'], ['backup', '--to', '/tmp/never']].map(
        (args) => log(...args).ended,
      ),
    )
    expect(read).toMatchObject({ code: 0, stderr: '' })
    expect(read?.stdout.match(/"id":"trun_\d:completed"/g)).toHaveLength(2)
    // Each of the two sources has a barrier.
    expect(JSON.parse(stats?.stdout ?? '')).toMatchObject({ entries: 4, walBytes: 0 })
    expect(JSON.parse(consumers?.stdout ?? '')).toMatchObject({ name: 'billing', lag: { entries: 4 } })
    expect(backup).toMatchObject({ code: 1, stdout: '' })
    expect(backup?.stderr).toContain('nats stream backup')

    const tail = log('tail', '--from', 'start')
    await tail.stdoutLine((line) => line.includes('trun_2'))
    const added = tail.stdoutLine((line) => line.includes('trun_3'))
    const writer = opened('reading')
    await append(writer, await writer.claim('stream'), run('trun_3'))
    await added
    tail.child.kill('SIGTERM')
    expect(await tail.ended).toMatchObject({ code: 143 })

    expect(await log('remove-reader', '--consumer', 'billing').ended).toMatchObject({ code: 0 })
    expect((await log('consumers').ended).stdout).toBe('')
  })

  it('ends with 7 for a log that is not there or credentials that are refused, and creates nothing', async () => {
    const address = `${server.url}/missing`
    const wrong = { ...SIGNED, RIVULET_NATS_PASSWORD: 'not-the-password' }
    const [refused, missing] = await Promise.all(
      [wrong, SIGNED].map((signed) => rivulet(['log', 'read', '--log', address], signed).ended),
    )
    expect(missing).toMatchObject({ code: 7, stdout: '' })
    expect(missing?.stderr).toContain('the log "missing" does not exist on its server')
    const again = await rivulet(['log', 'stats', '--log', address], SIGNED).ended
    expect(again).toMatchObject({ code: 7 })

    expect(refused).toMatchObject({ code: 7, stdout: '' })
    expect(refused?.stderr).toContain('Authorization Violation')
    expect(refused?.stderr).not.toMatch(/password/)
  })

  it('records into a log that it creates, and reads that', async () => {
    const both = await research()
    const { run_id } = await both.client.tasks.create({ input: 'What is a rivulet?', processor: 'base' })
    const args = ['record', '--log', `${server.url}/recorded`, '--run', run_id, '--json']
    const recorded = rivulet(args, {
      ...SIGNED,
      RIVULET_BASE_URL: both.service.url ?? '',
      RIVULET_API_KEY: both.service.apiKey,
    })
    const { code, stdout, stderr } = await recorded.ended
    expect({ code, stderr: stderr.includes(PASSWORD) }).toEqual({ code: 0, stderr: false })
    const { entries } = JSON.parse(stdout)
    expect(entries).toBeGreaterThan(0)
    const all = await readAll(opened('recorded'))
    expect(all.filter(({ type }) => type !== 'log.tick')).toHaveLength(entries)
  })
})
