/**
 * Fills the small file system that a log is on, and prints what happened: how many entries were appended before the error, what it
 * is, what a reader finds, and whether the log goes on once there is room.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LogFileError } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { monitorEvent } from '../../src/protocol/event.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

const [folder = ''] = process.argv.slice(2)
const ballast = join(folder, 'ballast')
writeFileSync(ballast, Buffer.alloc(512 * 1024))
const log = sqliteStore(join(folder, 'log.db'))
const fence = await log.claim('stream:s')

let appended = 0
async function append(): Promise<void> {
  const output = { type: 'text', content: 'x'.repeat(2_000), basis: [] } as const
  const wire = { event_type: 'event_stream', event_id: `${appended}`, event_group_id: 'g', output } as const
  const event = monitorEvent('m', { ...wire, event_date: '2026-01-01' }, 'poll', 0)
  const expect = appended === 0 ? null : `${appended}`
  await log.append([{ fence, expect, position: `${appended + 1}`, entries: [newEntry(event)] }])
  appended += 1
}

let refusal: unknown
while (refusal === undefined && appended < 10_000) {
  try {
    await append()
  } catch (error) {
    refusal = error
  }
}
const before = appended
const [position] = await log.streamPositions(['stream:s'])
rmSync(ballast)
await append()

let read = 0
for (let after = await log.positionAt('start'), isEnd = false; !isEnd;) {
  const page = await log.read(after, { limit: 100 })
  read += page.entries.length
  after = page.position
  isEnd = page.isEnd
}
await log.close()
const isRefused = refusal instanceof LogFileError && refusal.retryable
process.stdout.write(JSON.stringify({ before, position, isRefused, message: String(refusal), read }))
