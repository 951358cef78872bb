// Asks each question of two processors, and keeps rows of the answers. Kill it at any time, and start it again with its folder: each row is there once.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { createResearchService } from 'rivulet/service'
import { opinions, usage } from './definitions.js'

const [folder = mkdtempSync(join(tmpdir(), 'rivulet-')), ...given] = process.argv.slice(2)
const questions = given.length > 0 ? given : ['What does RxJS do?', 'How is RxJS installed?']

const database = new DatabaseSync(join(folder, 'rows.db'))
database.exec('CREATE TABLE IF NOT EXISTS row (kind TEXT, data TEXT)')
const insert = (/** @type {string} */ kind, /** @type {object} */ data) => {
  database.prepare('INSERT INTO row VALUES (?, ?)').run(kind, JSON.stringify(data))
  console.log(kind, data)
}

const log = await openLog(sqliteStore(join(folder, 'log.db')))
log.process(usage)
log.process(opinions)
log.consume(
  'answers',
  { types: ['task_run.state'], batch: { size: 10, wait: 100 } },
  exactlyOnce(database, {
    effect: (runs) =>
      runs.forEach(({ data: { run, output } }) =>
        insert('answer', { run: run.run_id, answer: output?.content }),
      ),
  }),
)
log.consume(
  'usage',
  { types: ['window.result'] },
  exactlyOnce(database, { effect: (entry) => usage.isResult(entry) && insert('usage', entry.data) }),
)
log.consume(
  'opinions',
  { types: ['join.result'] },
  exactlyOnce(database, { effect: (entry) => opinions.isResult(entry) && insert('opinion', entry.data) }),
)

const service = await createResearchService({ docs: 'node_modules/rxjs', data: join(folder, 'service.db') })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
const asked = () => database.prepare("SELECT data ->> '$.id' AS id FROM row WHERE kind = 'asked'").get()?.id
if (asked() === undefined) {
  const { taskgroup_id: id } = await client.taskGroups.create()
  const inputs = questions.flatMap((input) =>
    ['lite', 'base'].map((processor) => ({ input, processor, metadata: { question: input } })),
  )
  await client.taskGroups.addRuns(id, { inputs })
  insert('asked', { id })
}
log.record({ client, taskGroups: [String(asked())] })
process.once('SIGTERM', () => log.close().then(() => service.close()))
