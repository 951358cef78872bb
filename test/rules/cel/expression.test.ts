import { describe, expect, it } from 'vitest'
import { compileExpression, Problem } from '../../../src/rules/cel/index.ts'
import { found } from './event.ts'

const evaluate = (text: string, content?: Readonly<Record<string, unknown>>, changed?: readonly boolean[]) =>
  compileExpression(text, { allowChanged: true }).evaluate(found(content), changed)

const missing = (path: string) => new Problem('missing', path)

describe('an expression', () => {
  it.each([
    ["data.output.content.company == 'Acme'", true],
    ["data.output.content['company'] == 'Acme'", true],
    ["source == '/v1/monitors/mon_1' && type == 'monitor.event_stream'", true],
    ['revision == 1 && !backfill && via == "poll" && time == null', true],
    ['data.output.basis[1].field', 'count'],
    ['data.output.basis.exists(b, b.field == data.output.content.company)', false],
    ['data.output.content', { company: 'Acme', count: 3, ratio: 0.5, list: [1, 2, 3], nothing: null }],
    ['data.output.content == {"company": "Acme"}', false],
    ["'company' in data.output.content", true],
    ["'nothing' in data.output.content", true],
    ["'other' in data.output.content", false],
    ['has(data.output.content.nothing)', true],
    ['has(data.output.content.other)', false],
    ['size(data.output.content)', 5],
    ['data.output.content.exists(name, name == "ratio")', true],
    ['data.output.content.list.map(x, x * 2)', [2, 4, 6]],
  ])('reads the fields of an event: %s', (text, value) => {
    expect(evaluate(text)).toEqual(value)
  })

  it.each([
    ['data.output.content.other == 1', missing('data.output.content.other')],
    ['data.event_group_id.matches("g") && data.output.content.a.b == 1', missing('data.output.content.a.b')],
    ['data.output.content.company.name == 1', missing('data.output.content.company.name')],
    ['has(data.output.content.a.b)', missing('data.output.content.a')],
    ['data.output.content.list[7] == 1', missing('[7]')],
    ['data.output.content.objects.map(o, o.a)', missing('data.output.content.objects')],
    ['!(data.output.content.other == 1)', missing('data.output.content.other')],
  ])('has no value where a field is missing: %s', (text, problem) => {
    expect(evaluate(text)).toEqual(problem)
  })

  it.each([
    ['false && data.output.content.other == 1', false],
    ['data.output.content.other == 1 && false', false],
    ['true || data.output.content.other == 1', true],
    ['data.output.content.other == 1 || true', true],
    ['data.output.content.other == 1 || false', missing('data.output.content.other')],
    ['data.output.content.other == 1 && true', missing('data.output.content.other')],
    ['has(data.output.content.other) ? data.output.content.other : "none"', 'none'],
    ['data.output.content.list.exists(x, x > 2 || data.output.content.other)', true],
    ['data.output.content.list.all(x, x > 2 && data.output.content.other)', false],
  ])('needs no field that cannot change its value: %s', (text, value) => {
    expect(evaluate(text)).toEqual(value)
  })

  it('takes the object prototype for no field', () => {
    expect(compileExpression('data.output.content.constructor').evaluate(found())).toEqual(
      missing('data.output.content.constructor'),
    )
    expect(compileExpression('data.output.content.__proto__').evaluate(found())).toEqual(
      missing('data.output.content.__proto__'),
    )
  })

  it('watches the arguments of changed(), and reads whether they changed', () => {
    const expression = compileExpression(
      "changed(data.output.content.company) && !changed(data.output.basis.map(b, b.field)) || source == ''",
      { allowChanged: true },
    )
    expect(expression.watched.map(({ text }) => text)).toEqual([
      'data.output.content.company',
      'data.output.basis.map(b, b.field)',
    ])
    expect(expression.watched.map((watched) => watched.evaluate(found()))).toEqual([
      'Acme',
      ['company', 'count'],
    ])
    const view = found()
    expect(expression.evaluate(view, [true, false])).toBe(true)
    expect(expression.evaluate(view, [true, true])).toBe(false)
    expect(expression.evaluate(view, [false, false])).toBe(false)
    expect(expression.evaluate(view)).toBe(false)
  })
})
