// Asks each question of a small and of a large processor, and accounts for the answers in tables. Kill it at any time, and start it again with its
// folder: each row is there once.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as path } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { createResearchService } from 'rivulet/service'
import { aggregate, count, define, from, join, keyBy, map, tumbling, where } from 'rivulet/streams'

const [folder = mkdtempSync(path(tmpdir(), 'rivulet-')), ...given] = process.argv.slice(2)
const questions = given.length > 0 ? given : ['What does RxJS do?', 'How is RxJS installed?']

// A window: the runs of each second. A join: the two answers to each question.
const runs = from('task_run.state')
const usage = define(
  'usage',
  { version: 1 },
  runs.pipe(
    keyBy(({ data }) => data.run.processor),
    aggregate('seconds', tumbling('1s'), { runs: count() }),
  ),
)
const answersOf = (/** @type {string} */ processor) =>
  runs.pipe(
    where(({ data }) => data.run.processor === processor),
    map(({ data }) => ({ question: String(data.run.metadata?.question), answer: data.output?.content })),
    keyBy(({ question }) => question),
  )
const pair = join('opinions', answersOf('base'), { within: '1m', kind: 'left' })
const opinions = define('opinions', { version: 1 }, answersOf('lite').pipe(pair))

// Rows for each run, in batches, and for what the definitions compute.
const database = new DatabaseSync(path(folder, 'rows.db'))
database.exec(`
  CREATE TABLE IF NOT EXISTS asked (task_group TEXT);
  CREATE TABLE IF NOT EXISTS answer (run TEXT, answer TEXT);
  CREATE TABLE IF NOT EXISTS usage (processor TEXT, second TEXT, runs INTEGER);
  CREATE TABLE IF NOT EXISTS opinion (question TEXT, small TEXT, large TEXT);
`)
const insert = (/** @type {string} */ table, /** @type {unknown[]} */ ...row) => {
  const values = row.map((value) => (typeof value === 'number' ? value : String(value ?? '')))
  database.prepare(`INSERT INTO ${table} VALUES (${values.map(() => '?').join()})`).run(...values)
  console.log(table, ...values)
}
const log = await openLog(sqliteStore(path(folder, 'log.db')))
log.process(usage)
log.process(opinions)
log.consume(
  'answers',
  { types: ['task_run.state'], batch: { size: 10, wait: 100 } },
  exactlyOnce(database, {
    effect: (batch) => batch.forEach(({ data }) => insert('answer', data.run.run_id, data.output?.content)),
  }),
)
log.consume(
  'usage',
  { types: ['window.result'] },
  exactlyOnce(database, {
    effect: (entry) =>
      usage.isResult(entry) && insert('usage', entry.data.key, entry.data.start, entry.data.values.runs),
  }),
)
log.consume(
  'opinions',
  { types: ['join.result'] },
  exactlyOnce(database, {
    effect: (entry) =>
      opinions.isResult(entry) &&
      insert('opinion', entry.data.key, entry.data.left.answer, entry.data.right?.answer),
  }),
)

const service = await createResearchService({ docs: 'node_modules/rxjs', data: path(folder, 'service.db') })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
const asked = () => database.prepare('SELECT task_group FROM asked').get()?.task_group
if (asked() === undefined) {
  const { taskgroup_id } = await client.taskGroups.create()
  const inputs = questions.flatMap((input) =>
    ['lite', 'base'].map((processor) => ({ input, processor, metadata: { question: input } })),
  )
  await client.taskGroups.addRuns(taskgroup_id, { inputs })
  insert('asked', taskgroup_id)
}
log.record({ client, taskGroups: [String(asked())] })
process.once('SIGTERM', () => log.close().then(() => service.close()))
