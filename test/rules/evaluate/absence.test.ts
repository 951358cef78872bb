import { describe, expect, it } from 'vitest'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import type { AlertEvent } from '../../../src/rules/evaluate/in-memory.ts'
import type { RuleInput } from '../../../src/rules/evaluate/event-time.ts'
import { tickAt } from '../../support/ticks.ts'
import { BASE, compiled, inputOf, viewOf } from './plain-rule.ts'
import type { PlainRule } from './plain-rule.ts'

const source = '/v1/monitors/m'

const silent: PlainRule = {
  when: null,
  windows: [{ kind: 'absence', within: 1_000, of: new Set([source]) }],
  keyedBy: 'nothing',
  isPerEvent: false,
  reads: 'events',
  resolveWhen: null,
  after: 0,
  for: 0,
  keepFiringFor: 0,
  lateness: 100,
  backfill: 'ignore',
}

function at(recorded: number, type: RuleInput['type'] = 'unknown', from = source): RuleInput {
  const fields = { bits: 0, key: null, value: null, values: [] }
  const id = `${type}${recorded}`
  return inputOf({ id, source: from, type, at: recorded, recorded, revision: 1, backfill: 'no', fields })
}

/** What becomes of the alert: events in order, and numbers for ticks. */
function alertsOf(steps: readonly (RuleInput | number)[], rule: Partial<PlainRule> = {}): readonly string[] {
  const driver = new InMemoryRules([compiled({ ...silent, ...rule })], viewOf)
  return steps
    .flatMap((step) => (typeof step === 'number' ? driver.tick(BASE + step) : driver.arrive(step)))
    .map(textOf)
}

function textOf({ type, data }: AlertEvent): string {
  const since = 'since' in data ? Date.parse(data.since) - BASE : ''
  return `${type.slice(6)} ${'reason' in data ? `${data.reason} ` : ''}${since}`.trim()
}

describe('absence', () => {
  it('fires where a source does not report in time, and resolves with its next report', () => {
    expect(alertsOf([at(0), at(900), 1_999, 2_000, 2_100, at(2_200)])).toEqual([
      'firing 1900',
      'resolved condition 1900',
    ])
  })

  it('waits for events that come late', () => {
    expect(alertsOf([at(0), 1_099])).toEqual([])
    expect(alertsOf([at(0), 1_100])).toEqual(['firing 1000'])
  })

  it('waits until the reports of an outage have come', () => {
    const driver = new InMemoryRules([compiled(silent)], viewOf)
    const tick = (recorded: number, through: number) => ({
      ...tickAt(BASE + recorded, BASE + through),
      recorded: BASE + recorded,
    })
    const next = (...entries: readonly RuleInput[]) =>
      entries.flatMap((entry) => driver.next(entry)).map(textOf)
    const caughtUp = { id: 'r', source, type: 'unknown', revision: 1, backfill: 'no' } as const
    const fields = { bits: 0, key: null, value: null, values: [] }
    const report = (of: number) => inputOf({ ...caughtUp, id: `${of}`, at: of, recorded: 60_000, fields })
    expect(next(at(0), tick(1, 1), tick(60_000, 1), report(900), report(1_800))).toEqual([])
    expect(next(tick(60_001, 2_899))).toEqual([])
    expect(next(tick(60_002, 2_900))).toEqual(['firing 2800'])
  })

  it('begins when a source is live, and not with a source that the rule does not name', () => {
    expect(alertsOf([at(0, 'source.live'), 1_100])).toEqual(['firing 1000'])
    expect(alertsOf([at(0, 'source.live', '/v1/monitors/other'), at(0, 'unknown', '/s'), 5_000])).toEqual([])
  })

  it('is unknown while the source is lost, and waits for it', () => {
    expect(alertsOf([at(0), at(500, 'source.lost'), at(600, 'source.lost'), 5_000])).toEqual([
      'unknown lost 500',
    ])
    expect(
      alertsOf([at(0), at(500, 'source.lost'), at(5_000, 'source.live'), 5_099, at(5_099), 6_000]),
    ).toEqual(['unknown lost 500', 'known'])
    expect(alertsOf([at(0), at(500, 'source.lost'), at(5_000, 'source.live'), 5_100])).toEqual([
      'unknown lost 500',
      'known',
      'firing 5000',
    ])
  })

  it('neither fires nor resolves an alert that is unknown', () => {
    expect(alertsOf([at(0), 1_100, at(1_200, 'source.lost'), at(9_000, 'source.live'), 12_000])).toEqual([
      'firing 1000',
      'unknown lost 1200',
      'known',
    ])
    // It was not absent yet.
    expect(alertsOf([at(0), 1_050, at(1_090, 'source.lost'), 9_000], { for: 500 })).toEqual([
      'unknown lost 1090',
    ])
  })

  it('begins anew after a gap of the source', () => {
    expect(alertsOf([at(0), at(800, 'stream.gap'), 1_899, 1_900])).toEqual([
      'unknown gap 800',
      'firing 1800',
      'known',
    ])
  })

  it('is unknown where reports may be among entries that were deleted unread, and begins anew', () => {
    const gap = (recorded: number) => at(recorded, 'log.gap', '/log')
    // For all sources at once, then for the one that would be absent.
    const unknown = ['unknown gap 800', 'unknown gap 800']
    expect(alertsOf([at(0), gap(800), 1_100, 1_899])).toEqual(unknown)
    expect(alertsOf([at(0), gap(800), 1_100, 1_899, 1_900])).toEqual([
      ...unknown,
      'known',
      'firing 1800',
      'known',
    ])
    expect(alertsOf([at(0), gap(800), at(900), 1_999, 2_000])).toEqual([
      'unknown gap 800',
      'known',
      'firing 1900',
    ])
    // The deadline is over when the gap is known.
    expect(alertsOf([at(0), gap(1_200), 2_299])).toEqual(['unknown gap 1200', 'unknown gap 1200'])
  })

  it('does not fire after `for` where a gap was meanwhile, and a gap does not resolve it', () => {
    const gap = at(1_300, 'log.gap', '/log')
    expect(alertsOf([at(0), 1_100, gap, 1_700, 2_899], { for: 500 })).toEqual([
      'pending 1000',
      'unknown gap 1300',
      'unknown gap 1300',
      'inactive 1000',
      'known',
      'pending 2300',
      'known',
    ])
    expect(alertsOf([at(0), 1_100, gap, 9_000])).toEqual(['firing 1000', 'unknown gap 1300', 'known'])
  })

  it('resolves with a report from shortly before a gap of the source', () => {
    const report = { ...at(1_400), recorded: BASE + 1_410 }
    expect(alertsOf([at(0), 1_100, at(1_405, 'stream.gap'), report])).toEqual([
      'firing 1000',
      'unknown gap 1405',
      'resolved condition 1000',
      'known',
    ])
  })

  it('resolves what it keeps also while the source is lost', () => {
    const steps = [at(0), 1_100, at(1_200), at(1_300, 'source.lost'), 2_300]
    expect(alertsOf(steps, { keepFiringFor: 1_000 })).toEqual([
      'firing 1000',
      'unknown lost 1300',
      'resolved condition 1000',
    ])
  })

  it('has the seconds of silence as its value', () => {
    const driver = new InMemoryRules([compiled({ ...silent, for: 500 })], viewOf)
    const output = [at(0), at(3_000)].flatMap((event) => driver.arrive(event))
    expect(output.map(({ data }) => 'value' in data && data.value)).toEqual([1, 1.5, 3])
  })

  it('ends with the monitor, whose late reports do not begin it again', () => {
    expect(alertsOf([at(0), 1_100, at(1_500, 'monitor.cancelled'), at(1_600), 9_000])).toEqual([
      'firing 1000',
      'resolved cancelled 1000',
    ])
  })

  it.each([
    ['a pending alert', [at(0), 1_100], { for: 500 }, 'inactive 1000'],
    ['an unknown alert', [at(0), at(500, 'source.lost')], {}, 'known'],
  ])('ends %s with the monitor', (_, steps, rule, end) => {
    expect(alertsOf([...steps, at(1_200, 'monitor.cancelled'), 9_000], rule).slice(1)).toEqual([end])
  })

  it('keeps the alert, and fires no second time, where the source is silent again', () => {
    const steps = [at(0), 1_100, at(1_200), 2_300, at(2_400), 2_500, 3_100]
    expect(alertsOf(steps, { keepFiringFor: 5_000 })).toEqual(['firing 1000'])
  })
})
