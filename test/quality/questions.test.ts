import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Question } from '../../bench/quality/answers/question.ts'
import { HALVES, halfOf } from '../../bench/quality/half.ts'
import { problemsOf } from '../../bench/quality/questions/audit.ts'

const root = resolve(import.meta.dirname, '../..')
const packages = join(root, 'node_modules')

const halves = HALVES.map((half) => {
  const questions: Question[] = JSON.parse(
    readFileSync(join(root, `bench/quality/questions/${half}.json`), 'utf8'),
  )
  return { half, questions }
})
const all = halves.flatMap(({ questions }) => questions)

describe('the questions with which answers are measured', () => {
  it('are in the half of their subject, each id once', () => {
    const strangers = halves.flatMap(({ half, questions }) =>
      questions.filter(({ subject }) => halfOf(subject) !== half),
    )
    expect(strangers.map(({ id }) => id)).toEqual([])
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  })

  it('are many in each half, the held one large enough to judge by, over many packages and in every form', () => {
    const known = all.filter((question) => question.expect !== 'unknown')
    expect(known.length).toBeGreaterThanOrEqual(140)
    expect(all.length - known.length).toBeGreaterThanOrEqual(50)
    expect(new Set(known.map(({ subject }) => subject)).size).toBeGreaterThanOrEqual(70)
    const unknown = all.filter((question) => question.expect === 'unknown')
    for (const set of [known, unknown]) {
      const tuning = set.filter(({ subject }) => halfOf(subject) === 'tuning').length
      expect(tuning / set.length).toBeGreaterThan(0.4)
      expect(tuning / set.length).toBeLessThan(0.75)
    }
    for (const form of ['words', 'text', 'json']) {
      expect(all.filter((question) => question.form === form).length).toBeGreaterThanOrEqual(40)
    }
  })

  it('have labels that the installed documents bear out', () => {
    expect(all.flatMap((question) => problemsOf(question, packages))).toEqual([])
  })

  it('ask for each field of a schema that they score', () => {
    const json = all.filter((question) => question.form === 'json')
    for (const { id, schema, expect: expected } of json) {
      const properties = Object.keys(Object(schema['properties']))
      const fields = expected === 'unknown' ? [] : Object.keys(expected)
      expect({ id, missing: fields.filter((field) => !properties.includes(field)) }).toEqual({
        id,
        missing: [],
      })
    }
  })
})

describe('the check of a label', () => {
  const item: Question = {
    id: 'rxjs-licence',
    subject: 'rxjs',
    form: 'words',
    question: 'rxjs licence',
    expect: { accept: ['Apache-2.0'] },
    note: 'rxjs/package.json: “"license": "Apache-2.0"”',
  }

  it('accepts one whose quote is in the document', () => {
    expect(problemsOf(item, packages)).toEqual([])
  })

  it('finds a quote that is no longer in its document', () => {
    const changed = { ...item, note: 'rxjs/package.json: “"license": "Apache-3.0"”' }
    expect(problemsOf(changed, packages).join()).toContain(
      'rxjs/package.json no longer contains “"license": "Apache-3.0"”',
    )
  })

  it('finds an accepted answer that the quotes do not state', () => {
    expect(problemsOf({ ...item, expect: { accept: ['MIT'] } }, packages)).toEqual([
      'rxjs-licence: no quote of its note would be a right answer',
    ])
  })

  it('finds a refused answer in the quote that should be right', () => {
    const refusing: Question = { ...item, expect: { accept: ['Apache-2.0'], refuse: ['license'] } }
    expect(problemsOf(refusing, packages)).toEqual([
      'rxjs-licence: no quote of its note would be a right answer',
    ])
  })

  it('names a package that is not installed', () => {
    const elsewhere = { ...item, note: 'some-binding-win32/README.md: “Apache-2.0”' }
    expect(problemsOf(elsewhere, packages).join()).toContain(
      'some-binding-win32 is not installed on this platform',
    )
  })

  it('finds a document that speaks of what an item calls unknown', () => {
    const unknown: Question = { ...item, expect: 'unknown', note: 'none in rxjs: /apache/i' }
    expect(problemsOf(unknown, packages).join()).toContain('rxjs/LICENSE.txt matches /apache/i')
    expect(problemsOf({ ...unknown, note: 'not installed: rxjs' }, packages).join()).toContain(
      'rxjs is installed',
    )
    expect(problemsOf({ ...unknown, note: '' }, packages)).toEqual([
      'rxjs-licence: its note does not claim where the documents are silent',
    ])
  })
})
