import { fork } from 'node:child_process'
import { once } from 'node:events'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { scratchFile } from '../log/sqlite/scratch.ts'
import { write } from '../service/corpus/folder.ts'
import { completed, detected, ended, entriesOf, recordingLog, until } from '../log/record/recording-log.ts'
import { programFiles } from '../support/programs.ts'
import { research } from './research.ts'

const fileOf = await programFiles()
const execArgv = ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning']

/** A receiver in another process, with the log of the file. Resolves with its URL. */
async function receiverProcess(file: string, secret: string): Promise<string> {
  const child = fork(fileOf('test/log/sqlite/receiving-process.ts'), [file, secret], { execArgv })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [port]: unknown[] = await once(child, 'message')
  return `http://127.0.0.1:${String(port)}/`
}

describe('webhooks that another process receives', () => {
  it('are recorded once each, with the events that the service has', async () => {
    const both = await research()
    const { client, docs, service } = both
    const file = scratchFile()
    const log = await openLog(sqliteStore(file))
    onTestFinished(() => log.close())
    const url = await receiverProcess(file, service.webhookSecret)
    const event_types = ['monitor.event.detected', 'monitor.execution.completed'] as const
    const monitor = await client.monitors.create({
      type: 'event_stream',
      frequency: '1h',
      settings: { query: 'spring tide' },
      webhook: { url, event_types: [...event_types] },
    })
    const recording = log.record({ client, webhooks: true })
    const kept = () => service.records().monitor_events
    await until(() => kept().length > 0)
    for (let n = 1; n <= 3; n++) {
      const before = kept().length
      await write(docs, {
        [`note-${n}.md`]: `# Note ${n}\n\nTide gauge ${n} measured a spring tide today.\n`,
      })
      await client.monitors.trigger(monitor.monitor_id)
      await until(() => kept().length > before)
    }
    await until(async () => (await entriesOf(log)).length >= kept().length)
    await recording.stop()
    const entries = await entriesOf(log)
    expect(entries.map(({ id }) => id).toSorted()).toEqual(
      kept()
        .map(({ id }) => id)
        .toSorted(),
    )
    expect(entries.every(({ via, revision }) => via === 'webhook' && revision === 1)).toBe(true)
  })
})

describe('a recorder that is killed at each of its commits', () => {
  it('records each webhook once, in the order of a monitor that it polls', { timeout: 120_000 }, async () => {
    const { service } = await recordingLog()
    service.monitors.set('own', ['g3', 'g2', 'g1']).set('other', ['h1'])
    const file = scratchFile()
    const store = sqliteStore(file)
    const log = await openLog(store)
    onTestFinished(() => log.close())
    const payloads = [
      detected('own', 'g3'),
      ended('r1', { status: 'failed', error: { message: 'no' } }),
      detected('other', 'h1'),
      detected('own', 'g1'),
      ...[1, 2, 3].map((n) => completed('other', `2026-01-01T00:00:0${n}Z`)),
      { type: 'unheard.of' },
    ]
    for (const [n, payload] of payloads.entries()) {
      await log.inbox.put({ id: `msg_${n}`, timestamp: 1_760_000_000, payload }, JSON.stringify(payload))
    }
    const outcomes: unknown[] = []
    // The first two commits are those of claims.
    for (let commit = 2; outcomes.at(-1) !== 0 && commit < 20; commit++) {
      const args = [file, service.url, String(commit), commit % 2 === 0 ? 'after' : 'before']
      const child = fork(fileOf('test/e2e/recording-process.ts'), args, { execArgv })
      onTestFinished(() => void child.kill('SIGKILL'))
      const [code, signal]: unknown[] = await once(child, 'exit')
      outcomes.push(signal ?? code)
    }
    expect(outcomes.at(-1)).toBe(0)
    expect(outcomes.filter((outcome) => outcome === 'SIGKILL').length).toBeGreaterThan(1)
    expect(await store.inbox.pending(null, 1)).toEqual([])
    const entries = await entriesOf(log)
    expect(entries.filter(({ source }) => source.endsWith('/own')).map(({ id }) => id)).toEqual([
      'g1-event',
      'g2-event',
      'g3-event',
    ])
    expect(entries).toHaveLength(3 + 1 + 1 + 3 + 1)
    expect(entries.every(({ revision }) => revision === 1)).toBe(true)
  })
})
