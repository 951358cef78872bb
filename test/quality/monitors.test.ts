import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HALVES } from '../../bench/quality/half.ts'
import { readItems } from '../../bench/quality/items.ts'
import { applyChange, readChanges } from '../../bench/quality/monitors/change.ts'
import type { LabelledMonitor } from '../../bench/quality/monitors/monitor.ts'
import { monitorFigures, scoreMonitor } from '../../bench/quality/monitors/score.ts'

const monitor: LabelledMonitor = {
  subject: 'x',
  query: 'new versions of x',
  expect: [
    { day: 1, document: 'x.md', statement: '1.1.0' },
    { day: 5, document: 'x.md', statement: '1.2.0' },
  ],
  tolerate: [{ day: 5, document: 'y.md' }],
}
const report = (day: number, document: string, text = '') => ({ day, document, texts: [text] })

describe('the score of a monitor', () => {
  it('compares the day and the document, and counts several events of them once', () => {
    const reports = [
      report(1, 'x.md', 'Version `1.1.0`'),
      report(1, 'x.md'),
      report(2, 'x.md'),
      report(2, 'x.md'),
      report(5, 'y.md'),
    ]
    const scored = scoreMonitor({ monitor, reports })
    expect(scored).toMatchObject({ expected: 2, right: 1, stated: 1 })
    expect(scored.wrong).toMatchObject([{ day: 2, document: 'x.md' }])
    expect(scored.missing).toMatchObject([{ day: 5, document: 'x.md' }])
    const values = monitorFigures([scored]).map(({ name, value }) => [name, value])
    expect(values).toEqual([
      ['precision', 0.5],
      ['recall', 0.5],
      ['right reports with the statement', 1],
    ])
  })

  it('notices a right report without the statement', () => {
    expect(scoreMonitor({ monitor, reports: [report(1, 'x.md', 'Version 1.0.0')] })).toMatchObject({
      right: 1,
      stated: 0,
    })
  })
})

describe('the month of changes', () => {
  const monitors = HALVES.flatMap((half) => readItems<LabelledMonitor>('monitors', half))

  it('adds each labelled statement to its document on its day', () => {
    const folder = mkdtempSync(join(tmpdir(), 'rivulet-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    cpSync(fileURLToPath(new URL('../../bench/quality/monitors/folder', import.meta.url)), folder, {
      recursive: true,
    })
    const labels = monitors.flatMap(({ expect: expected }) => expected)
    const read = (document: string) => {
      const path = join(folder, document)
      return existsSync(path) ? readFileSync(path, 'utf8') : ''
    }
    const isStated = ({ document, statement }: (typeof labels)[number]) => read(document).includes(statement)
    const wrong: unknown[] = []
    for (let day = 1; day <= 30; day++) {
      const changes = readChanges().filter((change) => change.day === day)
      if (changes.length === 0) wrong.push(`no change on day ${day}`)
      const due = labels.filter((label) => label.day === day)
      wrong.push(...due.filter(isStated))
      for (const change of changes) applyChange(folder, change)
      wrong.push(...due.filter((label) => !isStated(label)))
    }
    expect(wrong).toEqual([])
  })

  it('has at least 20 monitors', () => {
    expect(monitors.length).toBeGreaterThanOrEqual(20)
  })
})
