import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLog } from 'rivulet/log'
import type { Entry } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { signedRequest } from 'rivulet/webhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeldRuns, research } from '../e2e/research.ts'
import type { Research } from '../e2e/research.ts'
import { LIBRARIES, PACKAGES } from '../service/find-all/caller.ts'
import { rivulet } from './command.ts'

/** The path of a log's file, removed after the test. */
async function logFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-record-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'log.db')
}

const environment = ({ service }: Research) => ({
  RIVULET_BASE_URL: service.url ?? '',
  RIVULET_API_KEY: service.apiKey,
})

/** Records groups with the real command. */
function record(both: Research, file: string, groups: readonly string[], ...args: readonly string[]) {
  const selected = groups.flatMap((id) => ['--group', id])
  return rivulet(['record', '--log', file, '--json', ...selected, ...args], environment(both))
}

/** The ends of runs in a log. */
async function runsIn(file: string): Promise<readonly Entry[]> {
  await using log = await openLog(sqliteStore(file, { create: false }))
  const { entries } = await log.read(await log.positionAt('start'), { limit: 10_000 })
  return entries.filter(({ type }) => type === 'task_run.state')
}

/** Resolves once the end of a run is in the log. */
async function firstRunIn(file: string): Promise<void> {
  await using log = await openLog(sqliteStore(file, { create: false }))
  const { promise, resolve } = Promise.withResolvers<void>()
  const job = log.consume('the test', { types: ['task_run.state'] }, () => resolve())
  await promise
  await job.stop()
}

describe('rivulet record', () => {
  it('records a single run with its progress and a FindAll run, and ends with both', async () => {
    const both = await research({ files: PACKAGES })
    const { run_id } = await both.client.tasks.create({
      input: 'What is a rivulet?',
      processor: 'base',
      enable_events: true,
    })
    const { findall_id } = await both.client.findAll.create(LIBRARIES)
    const file = await logFile()
    const ids = ['--run', run_id, '--find-all', findall_id]
    const first = await record(both, file, [], ...ids).ended
    const again = await record(both, file, [], ...ids).ended
    await using log = await openLog(sqliteStore(file, { create: false }))
    const { entries } = await log.read(await log.positionAt('start'), { limit: 10_000 })
    const types = entries.map(({ type }) => type)

    expect(first).toMatchObject({ code: 0 })
    expect(types).toEqual(
      expect.arrayContaining(['task_run.progress_msg', 'task_run.state', 'findall.candidate.matched']),
    )
    expect(types.filter((type) => type === 'task_run.state')).toHaveLength(1)
    expect(entries.findLast(({ type }) => type === 'findall.status')).toMatchObject({
      data: { data: { status: { status: 'completed' } } },
    })
    expect(again).toMatchObject({ code: 0 })
    expect(new Set(entries.map(({ source, id }) => `${source} ${id}`)).size).toBe(entries.length)
  })

  it('ends at once for an unknown FindAll run, and creates no file', async () => {
    const both = await research()
    const file = await logFile()
    const { code } = await record(both, file, [], '--find-all', 'findall_other').ended

    expect(code).not.toBe(0)
    expect(existsSync(file)).toBe(false)
  })

  it('records each event once, also after a restart, and ends with the groups', async () => {
    const both = await research()
    const id = await both.group('a', 'b', 'c')
    const file = await logFile()
    const first = await record(both, file, [id]).ended
    const again = await record(both, file, [id]).ended

    expect(first).toMatchObject({ code: 0 })
    expect(JSON.parse(first.stdout).entries).toBeGreaterThanOrEqual(3)
    expect(again).toMatchObject({ code: 0 })
    // That the source was reached again.
    expect(JSON.parse(again.stdout).entries).toBe(1)
    const runs = await runsIn(file)
    expect(runs).toHaveLength(3)
    expect(new Set(runs.map((entry) => entry.id)).size).toBe(3)
    expect(`${first.stdout}${first.stderr}${again.stderr}`).not.toContain(both.service.apiKey)
  })

  it('stores what it has received when it is stopped, prints it, and resumes there', async () => {
    const processor = new HeldRuns()
    const both = await research({ processor })
    const id = await both.group('a', 'b')
    const file = await logFile()
    const first = record(both, file, [id])
    await first.stderrLine((line) => line.includes('recording'))
    first.child.kill('SIGINT')
    const stopped = await first.ended
    processor.release()
    const ended = await record(both, file, [id]).ended

    expect(stopped.code).toBe(130)
    expect(JSON.parse(stopped.stdout)).toEqual({ entries: expect.any(Number), duplicates: 0 })
    expect(ended.code).toBe(0)
    await expect(runsIn(file)).resolves.toHaveLength(2)
  })

  it('with --share, runs on and goes on where another process with the same name has stopped', async () => {
    const processor = new HeldRuns()
    const both = await research({ processor })
    const id = await both.group('a', 'b')
    const file = await logFile()
    const share = ['--share', 'all']
    const first = record(both, file, [id], ...share)
    await first.stderrLine((line) => line.includes('recording'))
    const second = record(both, file, [id], ...share)
    await second.stderrLine((line) => line.includes('recording'))
    first.child.kill('SIGINT')
    const stopped = await first.ended
    processor.release()
    await firstRunIn(file)
    await expect.poll(() => runsIn(file), { timeout: 60_000 }).toHaveLength(2)
    expect(second.child.exitCode).toBeNull()
    second.child.kill('SIGINT')
    const ended = await second.ended
    expect([stopped.code, ended.code]).toEqual([130, 130])
    expect((await record(both, file, [id], '--share', '').ended).code).toBe(2)
  })

  /** Holds the streams of a group in a log, as another recorder does. */
  async function holding(file: string, id: string) {
    const store = sqliteStore(file, { owner: 'the recorder of this test' })
    onTestFinished(() => store.close())
    await store.claim(`stream:groups/${id}/runs`)
    await store.claim(`stream:groups/${id}/events`)
    return store
  }

  it('is refused while another process records the same, and names it', async () => {
    const both = await research()
    const id = await both.group('a')
    const file = await logFile()
    await holding(file, id)
    const { code, stdout, stderr } = await record(both, file, [id]).ended

    expect({ code, stdout }).toEqual({ code: 6, stdout: '' })
    expect(stderr).toContain('the recorder of this test')
    expect(stderr).toContain('--wait')
    expect(stderr).not.toContain('`wait`')
  })

  it('waits for another process with --wait', async () => {
    const both = await research()
    const id = await both.group('a')
    const file = await logFile()
    const other = await holding(file, id)
    const waiting = record(both, file, [id], '--wait')
    await waiting.stderrLine((line) => line.includes('recording'))
    await other.close()

    expect((await waiting.ended).code).toBe(0)
    await expect(runsIn(file)).resolves.toHaveLength(1)
  })

  /** An address of the service that breaks each connection until it is `up`. */
  async function outage({ service }: Research) {
    let isUp = false
    const server = createServer((socket) => {
      if (!isUp) return void socket.destroy()
      const upstream = connect(Number(new URL(service.url ?? '').port), '127.0.0.1')
      socket.on('error', () => upstream.destroy()).on('close', () => upstream.destroy())
      upstream.on('error', () => socket.destroy()).on('close', () => socket.destroy())
      socket.pipe(upstream).pipe(socket)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    return { url: `http://127.0.0.1:${port}`, up: () => (isUp = true) }
  }

  it('waits for a service that cannot be reached at its start, receives webhooks meanwhile, and goes on', async () => {
    const both = await research()
    const id = await both.group('a')
    const file = await logFile()
    const { url, up } = await outage(both)
    const secret = 'whsec_of_the_test'
    const args = ['record', '--log', file, '--json', '--group', id, '--webhook-port', '0']
    const recording = rivulet(args, {
      ...environment(both),
      RIVULET_BASE_URL: url,
      RIVULET_WEBHOOK_SECRET: secret,
    })
    const endpoint = await recording.stderrLine((line) => line.includes('receiving webhooks'))
    const run = { run_id: 'trun_other', status: 'failed', is_active: false, error: { message: 'no source' } }
    const payload = { type: 'task_run.status', timestamp: '2026-01-01T00:00:00Z', data: run }
    const request = await signedRequest(JSON.parse(endpoint).url, payload, { secrets: secret, id: 'msg_1' })
    expect((await fetch(request)).status).toBe(204)
    await firstRunIn(file)
    up()
    await expect.poll(async () => runsIn(file), { timeout: 15_000 }).toHaveLength(2)
    recording.child.kill('SIGTERM')
    const { code, stderr } = await recording.ended

    expect(code).toBe(143)
    expect(stderr).toContain('recording begins when the service can be reached')
  })

  it('ends at once where the service refuses the key, and creates no file', async () => {
    const both = await research()
    const id = await both.group('a')
    const file = await logFile()
    const env = { ...environment(both), RIVULET_API_KEY: 'another_key' }
    const { code } = await rivulet(['record', '--log', file, '--group', id], env).ended

    expect(code).toBe(3)
    expect(existsSync(file)).toBe(false)
  })

  it('ends at once for an unknown group, and creates no file', async () => {
    const both = await research()
    const file = await logFile()
    const { code, stdout, stderr } = await record(both, file, ['tgrp_none']).ended

    expect(code).toBe(4)
    expect(stdout).toBe('')
    expect(stderr).toContain('tgrp_none')
    expect(existsSync(file)).toBe(false)
  })

  it('logs a permanent failure, records the others, and ends with the exit code of the failure', async () => {
    const processor = new HeldRuns()
    const both = await research({ processor })
    const [gone, kept] = [await both.group('a'), await both.group('b')]
    both.service.faults.add({ kind: 'deleted-group', group: gone, after: 1 })
    const file = await logFile()
    const recording = record(both, file, [gone, kept])
    const failure = await recording.stderrLine((line) => line.includes('failed for good'))
    processor.release()

    expect(JSON.parse(failure)).toMatchObject({ level: 'error', source: expect.stringContaining(gone) })
    expect((await recording.ended).code).toBe(4)
    await expect(runsIn(file)).resolves.toHaveLength(1)
  })

  it('stores webhooks before it answers them, and records each once', async () => {
    const secret = 'whsec_of_the_test'
    const file = await logFile()
    const recording = rivulet(['record', '--log', file, '--webhook-port', '0', '--json'], {
      RIVULET_BASE_URL: 'http://127.0.0.1:1',
      RIVULET_API_KEY: 'key_of_the_test',
      RIVULET_WEBHOOK_SECRET: secret,
    })
    const { url } = JSON.parse(await recording.stderrLine((line) => line.includes('receiving webhooks')))
    const run = { run_id: 'trun_1', status: 'failed', is_active: false, error: { message: 'no source' } }
    const payload = { type: 'task_run.status', timestamp: '2026-01-01T00:00:00Z', data: run }
    const post = async () => fetch(await signedRequest(url, payload, { secrets: secret, id: 'msg_1' }))
    const statuses = [(await post()).status, (await post()).status]
    await firstRunIn(file)
    recording.child.kill('SIGTERM')
    const { code, stderr } = await recording.ended

    expect(statuses).toEqual([204, 204])
    expect(code).toBe(143)
    expect(stderr).not.toContain(secret)
    await expect(runsIn(file)).resolves.toMatchObject([{ id: 'trun_1:failed', via: 'webhook' }])
  })
})
