import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished, vi } from 'vitest'
import { randomOf } from '../../bench/random.ts'
import { scratchFolder } from '../log/sqlite/scratch.ts'
import { programFiles } from '../support/programs.ts'

const fileOf = await programFiles()

const SERVICE = 'examples/pipeline/service.js'
const KILLS = 6
const QUESTIONS = Array.from({ length: 20 }, (_, n) => `What does the operator ${n} of RxJS do?`)

/** The rows of the service, and what they must be by the entries alone. */
const ROWS = {
  answer: [
    `SELECT data ->> '$.run', data ->> '$.answer' FROM service.row WHERE kind = 'answer'`,
    `SELECT event ->> '$.data.run.run_id', event ->> '$.data.output.content' FROM run`,
  ],
  usage: [
    `SELECT data ->> '$.key', data ->> '$.start', data ->> '$.values.runs' FROM service.row WHERE kind = 'usage'`,
    `SELECT event ->> '$.data.run.processor', substr(event ->> '$.time', 1, 19) || '.000Z', count(*) FROM run GROUP BY 1, 2`,
  ],
  opinion: [
    `SELECT data ->> '$.key', data ->> '$.left.answer', data ->> '$.right.answer' FROM service.row WHERE kind = 'opinion'`,
    `SELECT lite.event ->> '$.data.run.metadata.question', lite.event ->> '$.data.output.content', base.event ->> '$.data.output.content'
      FROM run AS lite LEFT JOIN run AS base
        ON base.event ->> '$.data.run.metadata.question' = lite.event ->> '$.data.run.metadata.question'
          AND base.event ->> '$.data.run.processor' = 'base'
          AND abs(unixepoch(base.event ->> '$.time', 'subsec') - unixepoch(lite.event ->> '$.time', 'subsec')) <= 60
      WHERE lite.event ->> '$.data.run.processor' = 'lite'`,
  ],
} as const

/** @param lines After how many lines it is killed: each is a row whose transaction is not over yet. */
function start(folder: string, lines = Infinity) {
  const killing = `
    const { log } = console
    let left = ${lines}
    console.log = (...row) => {
      log(...row)
      if (--left === 0) process.kill(process.pid, 'SIGKILL')
    }`
  const preload = `data:text/javascript,${encodeURIComponent(killing)}`
  const args = ['--conditions=rivulet-source', '--import', preload, fileOf(SERVICE), folder, ...QUESTIONS]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, exited: once(child, 'exit') }
}

it(
  'has each row of its batch, its window and its join once, wherever it is killed',
  { timeout: 180_000 },
  async () => {
    const random = randomOf(20_261_130)
    const folder = scratchFolder()
    for (let kills = 0; kills < KILLS; kills++) {
      // So few that rows are left for each life.
      const { exited } = start(folder, 1 + Math.floor(random() * 10))
      const [, signal]: unknown[] = await exited
      expect(signal).toBe('SIGKILL')
    }
    const { child, exited } = start(folder)
    const database = new DatabaseSync(join(folder, 'log.db'), { readOnly: true, timeout: 5_000 })
    onTestFinished(() => database.close())
    database.exec(`
      ATTACH '${join(folder, 'rows.db')}' AS service;
      CREATE TEMP VIEW run AS SELECT json(event) AS event FROM main.rivulet_entry WHERE type = 'task_run.state';
    `)
    const rows = (sql: string) =>
      database
        .prepare(sql)
        .all()
        .map((row) => JSON.stringify(Object.values(row)))
        .toSorted()
    await vi.waitFor(
      () => {
        expect(rows('SELECT event FROM run')).toHaveLength(2 * QUESTIONS.length)
        for (const [actual, expected] of Object.values(ROWS)) expect(rows(actual)).toEqual(rows(expected))
      },
      { timeout: 60_000, interval: 100 },
    )
    expect(rows(ROWS.opinion[0])).toHaveLength(QUESTIONS.length)
    expect(rows("SELECT event FROM main.rivulet_entry WHERE type = 'stage.dropped'")).toEqual([])
    expect(rows('SELECT * FROM main.rivulet_dead_letter')).toEqual([])
    child.kill('SIGTERM')
    const [code]: unknown[] = await exited
    expect(code).toBe(0)
  },
)

it('has fewer than 90 lines', () => {
  const files = ['service.js', 'definitions.js'].map((file) =>
    readFileSync(`examples/pipeline/${file}`, 'utf8'),
  )
  expect(files.join('').trim().split('\n').length).toBeLessThan(90)
})
