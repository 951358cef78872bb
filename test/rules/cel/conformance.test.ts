import { describe, expect, it } from 'vitest'
import { compileExpression, Problem } from '../../../src/rules/cel/index.ts'
import { found } from './event.ts'

const evaluate = (text: string) => compileExpression(text).evaluate(found())

/** Stands for an operand that has no value. */
const NONE = 'data.output.content.none'

describe('CEL', () => {
  it.each([
    ['true', 'true', true, true],
    ['true', 'false', false, true],
    ['false', NONE, false, 'problem'],
    [NONE, 'false', false, 'problem'],
    ['true', NONE, 'problem', true],
    [NONE, 'true', 'problem', true],
    [NONE, NONE, 'problem', 'problem'],
    ['false', '1', false, 'problem'],
    ['1', 'true', 'problem', true],
  ])('has a logic of three values: %s and %s', (left, right, and, or) => {
    const kind = (text: string) => {
      const value = evaluate(text)
      return value instanceof Problem ? 'problem' : value
    }
    expect(kind(`${left} && ${right}`)).toBe(and)
    expect(kind(`${left} || ${right}`)).toBe(or)
  })

  it.each([
    ['data.output.content.count > 3', false],
    ['data.output.content.count >= 3', true],
    ['3 <= data.output.content.count', true],
    ['data.output.content.count == 3', true],
    ['data.output.content.count in [1, 2, 3]', true],
    ['3 in data.output.content.list', true],
    ['3u in data.output.content.list', true],
    ['4 in data.output.content.list', false],
    ['data.output.content.count + 1 == 4', true],
    ['1 - data.output.content.ratio', 0.5],
    ['data.output.content.count * 2', 6],
    ['data.output.content.count / 2', 1.5],
    ['data.output.content.count % 2 == 1', true],
    ['size(data.output.content.list) / 2', 1],
    ['-data.output.content.count', -3],
    ['int(data.output.content.ratio + 1)', 1],
    ['int("42") + 1', 43],
    ['double(1) / 2', 0.5],
    ['string(data.output.content.count)', '3'],
    ['1 == 1.0', true],
    ['"1" == 1', false],
    ['9007199254740993', '9007199254740993'],
    ['data.output.content.nothing == null', true],
    ['data.output.content.list == [1, 2, 3]', true],
    ['data.output.content.list != [1.0, 2u]', true],
    ['data.output.basis == data.output.basis', true],
    ['{"a": [1]} == {"a": [1.0]}', true],
    ['data.output.content.list.all(x, x > 0)', true],
    ['data.output.content.list.exists(x, x > 2)', true],
    ['data.output.content.list.exists_one(x, x > 2)', true],
    ['data.output.content.list.filter(x, x > 1)', [2, 3]],
    ['data.output.content.list.map(x, x > 1, x * 10)', [20, 30]],
    ['data.output.basis.map(b, b.citations.map(c, size(c.url)))', [[26, 25, 21, 19], [21]]],
    ['data.output.content.list + [4]', [1, 2, 3, 4]],
    [
      '[[1], [2]].map(x, x + [0])',
      [
        [1, 0],
        [2, 0],
      ],
    ],
    ['data.output.content.count > 2 ? "many" : "few"', 'many'],
    ["timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('24h')", true],
    ["timestamp(received) > timestamp('2026-01-01T00:00:00Z')", true],
    ["timestamp(received) + duration('90s')", '2026-01-03T00:01:30Z'],
    ['timestamp(received).getFullYear()', 2026],
    ["duration('1h30m')", '5400s'],
    ["'Series B'.matches('(?i)^series [a-e]$')", true],
    ["'aXb'.matches('a.b')", true],
    [String.raw`'é'.matches('^\\pL$')`, true],
    [String.raw`'foo bar'.matches(r'\bbar\b') && !'foobar'.matches(r'\bbar\b')`, true],
    ["type('a') == string && type(data.output.content.count) == double", true],
  ])('gives the value that is expected: %s', (text, value) => {
    expect(evaluate(text)).toEqual(value)
  })

  it.each([
    ['data.output.content.company > 3', '`>` cannot be applied to (string, int)'],
    ['1 / 0', 'int divide by zero'],
    ['data.output.content.ratio % 2', '% takes whole numbers'],
    ['int("x")', 'the text is no int'],
    ['int("99999999999999999999")', 'the number is too large for int'],
    ['data.output.content.count / 0', 'Infinity is no value'],
  ])('has no value for %s', (text, detail) => {
    expect(evaluate(text)).toEqual(new Problem('error', detail))
  })
})
