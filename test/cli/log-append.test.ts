import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { idsOf, readAll } from '../log/conformance/fixture.ts'
import { rivulet } from './command.ts'
import { inProcess } from './in-process.ts'

const EVENT = {
  specversion: '1.0',
  id: '1',
  source: '/invoices',
  type: 'invoice.sent',
  data: { amount: 100 },
}

const line = (event: object) => `${JSON.stringify({ ...EVENT, ...event })}\n`

/** A log in a file, and a function for a text in another one. */
async function scratch() {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-append-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'log.db')
  const store = sqliteStore(file)
  onTestFinished(() => store.close())
  await store.positionAt('start')
  return {
    store,
    file,
    ids: async () => idsOf(await readAll(store)),
    async written(text: string | Uint8Array) {
      const path = join(folder, 'events.ndjson')
      await writeFile(path, text)
      return path
    },
  }
}

describe('rivulet log append', () => {
  it('appends the events of a file, and skips what the log has', async () => {
    const { store, file, written } = await scratch()
    const events = await written(
      `${line({ time: '2026-01-31T12:00:00Z' })}\r\n\n${line({ id: '2', subject: 'x' })}`,
    )

    const first = await inProcess(['log', 'append', events, '--log', file])
    expect(first).toEqual({ code: 0, stdout: '2 events are appended.\n', stderr: '' })
    const again = await inProcess(['log', 'append', events, '--log', file, '--json'])
    expect(JSON.parse(again.stdout)).toEqual({ appended: { entries: 0, duplicates: 2 } })
    expect(await readAll(store)).toMatchObject([
      { id: '1', time: '2026-01-31T12:00:00Z', via: 'app', data: { amount: 100 } },
      { id: '2', time: null },
    ])
  })

  it('appends what is written on standard input, without an end of the last line', async () => {
    const { file, ids } = await scratch()
    const input = line({}) + line({ id: '2' }).trim()
    const { stdout } = await inProcess(['log', 'append', '--log', file], {}, input)

    expect(stdout).toBe('2 events are appended.\n')
    expect(await ids()).toEqual(['1', '2'])
  })

  it('appends each line as it comes, while the input goes on', async () => {
    const { store, file } = await scratch()
    const start = await store.positionAt('start')
    const append = rivulet(['log', 'append', '-', '--log', file], {}, null)
    append.child.stdin.write(line({}))
    await store.wait(start, new AbortController().signal)
    expect(idsOf(await readAll(store))).toEqual(['1'])
    append.child.kill('SIGINT')

    expect(await append.ended).toMatchObject({ code: 130, stdout: '' })
  })

  it('takes an export back, and refuses its entries of other types', async () => {
    const { store, file, ids, written } = await scratch()
    const log = await openLog(store)
    await log.append({ id: '1', source: '/invoices', type: 'invoice.sent', data: 1 })
    let exported = ''
    for await (const each of log.export()) exported += each
    const other = await scratch()
    const events = await written(exported + line({ id: '2', type: 'monitor.snapshot' }) + line({ id: '3' }))
    const { code, stdout, stderr } = await inProcess(['log', 'append', events, '--log', other.file])

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`${events}, line 2: event.type must be a type of your own`)
    expect(await other.ids()).toEqual(await ids())
    expect(file).not.toBe(other.file)
  })

  it.each([
    ['what is not JSON', 'nonsense', 'is not valid JSON'],
    ['a value that is no event', '[]', 'expected a CloudEvent'],
    ['another version of CloudEvents', line({ specversion: '0.3' }), 'expected a CloudEvent'],
    ['an event without an id', line({ id: undefined }), 'expected "id", "source" and "type", as texts'],
    ['an id that is a number', line({ id: 5 }), 'expected "id", "source" and "type", as texts'],
    ['an event without data', line({ data: undefined, data_base64: 'AA==' }), 'expected "data"'],
    ['a time that is null', line({ time: null }), 'expected "time" to be a text'],
    ['a time that is a day', line({ time: '2026-01-31' }), 'event.time must be a time in RFC 3339'],
    ['a source of the service', line({ source: '/v1/monitors/monitor_1' }), 'event.source must be'],
    ['an id that is empty', line({ id: '' }), 'event.id must be a text'],
    [
      'data that is too deep',
      `${line({}).trim().slice(0, -1)},"data":${'['.repeat(1e5)}${']'.repeat(1e5)}}`,
      'nested',
    ],
    [
      'a line that is too long',
      line({ data: 'x'.repeat(32 * 1024 * 1024) }),
      'it has more than 33554432 bytes',
    ],
    ['data that is too long', line({ data: 'x'.repeat(16 * 1024 * 1024) }), 'are more than 16777216'],
    ['what is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'it is not UTF-8'],
  ])('refuses %s with the number of its line, and appends the lines before', async (_, bad, message) => {
    const { file, ids, written } = await scratch()
    const events = await written(
      Buffer.concat([Buffer.from(`${line({})}\n`), Buffer.from(bad), Buffer.from(`\n${line({ id: '9' })}`)]),
    )
    const { code, stderr } = await inProcess(['log', 'append', events, '--log', file])

    expect(code).toBe(2)
    expect(stderr).toContain(`${events}, line 3: `)
    expect(stderr).toContain(message)
    expect(await ids()).toEqual(['1'])
  })

  it('names a file that cannot be read, and a missing log', async () => {
    const { file } = await scratch()
    const missing = await inProcess(['log', 'append', `${file}.ndjson`, '--log', file])
    expect(missing).toMatchObject({ code: 2, stdout: '' })
    expect(missing.stderr).toContain('ENOENT')

    const nowhere = await inProcess(['log', 'append', '--log', `${file}.none`], {}, line({}))
    expect(nowhere.code).toBe(7)
  })

  it('deletes nothing that the last recording keeps', async () => {
    const { store, file, written } = await scratch()
    const limits: unknown[] = []
    await store.retention.setPaused(null, 50 * 1024 ** 3)
    await inProcess(['log', 'append', await written(line({})), '--log', file])
    limits.push((await store.retention.room()).maxBytes)
    expect(limits).toEqual([50 * 1024 ** 3])
  })
})
