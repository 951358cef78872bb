/**
 * A pipeline with its effects in the database of its checkpoint, several events in work at once and finished in any order.
 * Tells each effect on a line.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { monitorEvent } from '../../src/protocol/event.ts'
import { openCheckpoint } from '../../src/state/checkpoint.ts'
import { sqliteCheckpointStore } from '../../src/state/sqlite.ts'

const [file = '', count = '0'] = process.argv.slice(2)
const store = sqliteCheckpointStore(file)
// Nothing in the table keeps a second effect of one event out.
store.database.exec('CREATE TABLE IF NOT EXISTS effects (id TEXT NOT NULL)')
const insert = store.database.prepare('INSERT INTO effects VALUES (?)')
const handler = store.exactlyOnce((event) => insert.run(event.id))
const checkpoint = await openCheckpoint(store)

let next = Number(checkpoint.position('s') ?? 0)
const work = async () => {
  while (next < Number(count)) {
    next += 1
    const event = monitorEvent('m', { event_type: 'event_stream', event_id: `e${next}` }, 'poll')
    checkpoint.entered('s', String(next), event)
    checkpoint.received(event)
    checkpoint.passed(event)
    for (let turns = next % 5; turns > 0; turns--) await nextTurn()
    handler(event)
    process.stdout.write(`${event.id}\n`)
    await checkpoint.handled(event)
  }
}
await Promise.all(Array.from({ length: 8 }, work))
await checkpoint.close()
