/**
 * Records into the log of a file, one event after the other, and prints the id of each that is appended; then how its recorder has failed.
 * After the next line of its input it goes on as if nothing had happened, and prints `ended`.
 */
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { LogError, openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { change } from '../../operators/events.ts'

const [file = ''] = process.argv.slice(2)
const log = await openLog(sqliteStore(file))
const failures: unknown[] = []
const recorder = log.recorder((error) => failures.push(error))
const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const stream = await recorder.open('stream:s')
const record = async (id: string) => {
  stream.add(change(id))
  await recorder.flushed(stream)
  if (failures.length === 0) print({ appended: id })
}
for (let n = 1; failures.length === 0; n++) {
  await record(String(n))
  await turn()
}
const [failure] = failures
if (!(failure instanceof LogError)) throw failure
const { name, message, retryable } = failure
print({ failed: name, message, retryable })
await once(process.stdin, 'data')
for (let n = 1; n <= 3; n++) await record(`after ${n}`)
print({ ended: true })
await log.close().catch(() => {})
process.exit()
