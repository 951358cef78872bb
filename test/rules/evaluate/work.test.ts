import * as fc from 'fast-check'
import { concat, lastValueFrom, of, toArray } from 'rxjs'
import { alerts, defineRules } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { compileExpression, Problem, viewOf } from '../../../src/rules/cel/index.ts'
import { finding, found } from '../cel/event.ts'

const C = 'data.output.content'
const WORK = found({}).work.left

/** What an expression uses of the work of an event, and its value. */
function used(when: string, content: Readonly<Record<string, unknown>>) {
  const view = found(content)
  const value = compileExpression(when.replaceAll('C.', `${C}.`)).evaluate(view)
  return { units: WORK - view.work.left, value }
}

/** Prose of this length: no character is as frequent as half of the text. */
const prose = (length: number) =>
  'the quick brown fox jumps over a lazy dog. '.repeat(Math.ceil(length / 43)).slice(0, length)

const functions = [
  "C.t.contains('zebra')",
  "C.t.indexOf('zebra') > 1",
  "C.t.lastIndexOf('zebra') > 1",
  "C.t.replace('zebra', 'x') == 'y'",
  "C.t.split('zebra').size() > 1",
  'C.t.size() == 1',
  "(C.t + 'x').lowerAscii() == 'x'",
  "(C.t + 'x').upperAscii() == 'x'",
  "C.t.trim() == 'x'",
  'C.t + C.t == "x"',
  "C.t.matches('zeb[r-t]a')",
  'C.t < C.u',
  'C.t == C.u',
  'size(bytes(C.t)) == 1',
  "[C.t, C.t].join(' ') == 'x'",
  'C.t.substring(1) == "x"',
  'C.t.startsWith(C.u)',
  'C.t in [C.u]',
  'C.t',
  '[C.t, C.t]',
]

describe('the work of a condition', () => {
  it.each(functions)('grows with the text that it reads: %s', (when) => {
    const small = used(when, { t: prose(20_000), u: prose(20_000) })
    const large = used(when, { t: prose(200_000), u: prose(200_000) })

    expect(large.units).toBeGreaterThan(small.units * 4)
    expect(large.units).toBeLessThan(small.units * 16)
  })

  it.each(functions.slice(0, 13))('is bounded where a macro repeats it: %s', (when) => {
    const repeated = `C.l.exists(x, ${when.replaceAll('C.t', '(C.t + x)')} && x == 'never')`
    const { value, units } = used(repeated, {
      t: 'a'.repeat(400_000),
      u: `${'a'.repeat(399_999)}b`,
      l: Array.from({ length: 1_000 }, (_, n) => `l${n}`),
    })

    expect(value).toBeInstanceOf(Problem)
    expect(value).toMatchObject({ kind: 'error', detail: expect.stringContaining('more work') })
    expect(units).toBeLessThan(2 * WORK)
  })

  it('is not taken for the error of one side of a condition', () => {
    const content = {
      t: 'a'.repeat(400_000),
      l: Array.from({ length: 1_000 }, (_, n) => `${'a'.repeat(n % 200)}b`),
    }

    const { value } = used(
      "C.l.exists(x, C.t.lowerAscii().contains(x) || C.t.contains(x + 'c')) || true",
      content,
    )

    expect(value).toBeInstanceOf(Problem)
  })

  it('counts more for a text that repeats itself than for prose', () => {
    const search = "C.t.contains('aaaaab')"

    const units = used(search, { t: 'a'.repeat(100_000) }).units
    expect(units).toBeGreaterThan(2 * used(search, { t: prose(100_000) }).units)
    expect(used('C.t.contains(C.u)', { t: 'a'.repeat(100_000), u: 'a'.repeat(3_000) }).units).toBeGreaterThan(
      WORK,
    )
  })

  it('is the same each time', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...functions),
        fc.constantFrom(...functions),
        fc.string({ maxLength: 2_000 }),
        (one, other, text) => {
          const when = `[${one}, C.l.map(x, ${other})].size() > 0`
          const content = { t: text.repeat(50), u: text, l: [1, 2, 3] }
          expect(used(when, content)).toEqual(used(when, content))
        },
      ),
    )
  })

  it('of its own output is done once for all rules, and counts for none', () => {
    const view = found({ t: prose(200_000) })
    compileExpression("text().lowerAscii().contains('zebra')").evaluate(view)
    const first = WORK - view.work.left
    compileExpression("text().lowerAscii().contains('okapi')").evaluate(view)

    // Two searches: a reading of the text for each rule would be 800,000 more.
    expect(first).toBeLessThan(200_000)
    expect(WORK - view.work.left).toBeLessThan(400_000)
  })
})

describe('the work of the rules of one event', () => {
  const heavy = `${C}.l.exists(x, ${C}.t.contains(x))`
  const event = finding({
    t: 'a'.repeat(1_000_000),
    l: Array.from({ length: 1_000 }, (_, n) => `${'a'.repeat(n % 200)}b`),
  })
  const rule = (alert: string, when: string) => ({ alert, on: ['monitor.event_stream'] as const, when })
  const firing = async (rules: readonly ReturnType<typeof rule>[]) => {
    const fired = await lastValueFrom(concat(of(event)).pipe(alerts(defineRules(rules)), toArray()))
    return fired.map(({ data }) => data.alert)
  }

  it('is shared fairly: rules that need too much blind no other rule, wherever they stand', async () => {
    const many = Array.from({ length: 50 }, (_, n) => rule(`Heavy${n}`, `${heavy} && ${n} >= 0`))
    const light = rule('Light', `text().contains('Acme') && ${C}.count == 3`)

    expect(await firing([...many, light])).toEqual(['Light'])
    expect(await firing([light, ...many])).toEqual(['Light'])
  })

  it('leaves to later rules what earlier ones did not need', async () => {
    const search = rule('Search', `${C}.t.contains('b') || ${C}.t.size() == 1000000`)
    const light = Array.from({ length: 200 }, (_, n) => rule(`Light${n}`, `${C}.count == ${n + 10}`))

    expect(await firing([...light, search])).toEqual(['Search'])
  })

  it('lets the view of an event end with the event', () => {
    expect(viewOf(event).work.left).toBe(WORK)
  })
})
