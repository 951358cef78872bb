import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Question } from '../answers/question.ts'
import { HALVES, halfOf } from '../half.ts'

// Moves every item into the file of its half, for instance after new ones were added to either file.
const files = HALVES.map((half) => ({ half, path: join(import.meta.dirname, `${half}.json`) }))
const all = files.flatMap(({ path }): Question[] => JSON.parse(readFileSync(path, 'utf8')))
for (const { half, path } of files) {
  const own = all.filter(({ subject }) => halfOf(subject) === half)
  writeFileSync(path, `${JSON.stringify(own, undefined, 2)}\n`)
}
