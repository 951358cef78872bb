// Keeps events in a table of one's own: each with the position of its stream, so that a restart goes on exactly after the last one.
import { DatabaseSync } from 'node:sqlite'
import { createClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'
import { takeWhile } from 'rxjs'

const service = await createResearchService({ docs: 'node_modules/rxjs' })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
const { taskgroup_id } = await client.taskGroups.create()
const inputs = ['What does RxJS do?', 'How is RxJS installed?', 'What is an Observable?']
const runs = inputs.map((input) => ({ input, processor: 'base' }))
await client.taskGroups.addRuns(taskgroup_id, { inputs: runs })

const database = new DatabaseSync(':memory:')
database.exec('CREATE TABLE events (id TEXT, type TEXT, data TEXT)')
database.exec('CREATE TABLE positions (stream TEXT PRIMARY KEY, position TEXT)')
const saved = database.prepare('SELECT position FROM positions WHERE stream = ?')
const insert = database.prepare('INSERT INTO events VALUES (?, ?, ?)')
const move = database.prepare('INSERT OR REPLACE INTO positions VALUES (?, ?)')

/** @param {import('rivulet').StreamItem} item */
function save({ stream, event, position }) {
  database.exec('BEGIN')
  if (event) insert.run(event.id, event.type, JSON.stringify(event.data))
  if (position) move.run(stream.name, position.text())
  database.exec('COMMIT')
}

const items = client.watch.positioned({
  taskGroups: [taskgroup_id],
  from: ({ name }) => saved.get(name)?.position?.toString(),
})
// Stops after the first event, as a process that is killed; the second subscription goes on after it.
await items.pipe(takeWhile((item) => (save(item), item.kind !== 'event'))).forEach(() => {})
await items.forEach(save)
await service.close()

const counts = database.prepare('SELECT count(*) events, count(*) - count(DISTINCT id) repeated FROM events')
console.log(counts.get())
