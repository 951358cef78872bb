import { type Figure, share } from '../report.ts'
import type { LabelledMonitor, Report } from './monitor.ts'

/** What a monitor reported of one document on one day. */
export interface GivenReport extends Report {
  /** The contents and cited excerpts of the events. */
  readonly texts: readonly string[]
}

/** What a monitor reported in the month. */
export interface MonitorReports {
  readonly monitor: LabelledMonitor
  readonly reports: readonly GivenReport[]
}

/** A monitor's reports, compared with its labels. A day and a document are one report, for any number of events. */
export interface ScoredMonitor {
  readonly expected: number
  readonly right: number
  readonly wrong: readonly Report[]
  readonly missing: readonly Report[]
  /** Right reports with the statement of the label. */
  readonly stated: number
}

/** Compares what a monitor reported with its labels. */
export function scoreMonitor({ monitor, reports }: MonitorReports): ScoredMonitor {
  const { expect, tolerate = [] } = monitor
  const distinct = Map.groupBy(reports, keyOf)
  const expected = new Map(expect.map((label) => [keyOf(label), label]))
  const tolerated = new Set(tolerate.map(keyOf))
  const wrong = [...distinct.entries()]
    .filter(([key]) => !expected.has(key) && !tolerated.has(key))
    .flatMap(([, [first]]) => (first === undefined ? [] : [first]))
  const found = expect.filter((label) => distinct.has(keyOf(label)))
  const stated = found.filter((label) =>
    (distinct.get(keyOf(label)) ?? []).some(({ texts }) =>
      texts.some((text) => states(text, label.statement)),
    ),
  )
  return {
    expected: expect.length,
    right: found.length,
    wrong,
    missing: expect.filter((label) => !distinct.has(keyOf(label))),
    stated: stated.length,
  }
}

/** Precision and recall over all monitors of a half. */
export function monitorFigures(scored: readonly ScoredMonitor[]): readonly Figure[] {
  const sum = (of: (one: ScoredMonitor) => number) => scored.reduce((total, one) => total + of(one), 0)
  const right = sum((one) => one.right)
  const target = { atLeast: 0.8 }
  return [
    share('precision', right, right + sum((one) => one.wrong.length), target),
    share(
      'recall',
      right,
      sum((one) => one.expected),
      target,
    ),
    share(
      'right reports with the statement',
      sum((one) => one.stated),
      right,
    ),
  ]
}

function keyOf({ day, document }: Report): string {
  return `${day} ${document}`
}

/** Whether a text has a statement, without regard to Markdown's marks and white space. */
function states(text: string, statement: string): boolean {
  const plain = (some: string) => some.replaceAll(/[`*]/g, '').replaceAll(/\s+/g, ' ')
  return plain(text).includes(plain(statement))
}
