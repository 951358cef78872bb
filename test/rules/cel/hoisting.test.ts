import { celEnv, isCelError, parse, plan } from '@bufbuild/cel'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ENVIRONMENT } from '../../../src/rules/cel/environment.ts'
import {
  compileExpression,
  ExpressionError,
  Problem,
  viewOf,
  type Expression,
} from '../../../src/rules/cel/index.ts'
import { toCelValue, toJsonValue } from '../../../src/rules/cel/json-value.ts'
import { withView } from '../../../src/rules/cel/view.ts'
import { finding } from './event.ts'

const name = fc.constantFrom('a', 'b', 'c')

/** JSON of few names and values, so that fields are found and values are equal. */
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, false, 0, 1, 2, 0.5, 'a', 'b', ''),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(name, tie('json'), { maxKeys: 3 }),
  ),
}))

/** Expressions of a small grammar: chains of fields, comparisons, logic, arithmetic, `has`, `in`, conditions and macros. */
const { expression } = fc.letrec<{ expression: string; path: string; range: string }>((tie) => ({
  path: fc
    .tuple(
      fc.constantFrom<string>('data.output.content', 'x', 'data.output'),
      fc.array(name, { maxLength: 3 }),
    )
    .map(([root, names]) =>
      names.reduce((path, field, index) => (index === 1 ? `${path}["${field}"]` : `${path}.${field}`), root),
    ),
  range: fc.oneof(tie('path'), fc.constant('[1, 2]')),
  expression: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      tie('path'),
      fc.constantFrom('1', '2', '0.5', "'a'", 'true', 'false', 'null', '[1]', '{"a": 1}'),
    ),
    fc
      .tuple(
        tie('expression'),
        fc.constantFrom('==', '!=', '<', '>=', '&&', '||', '+', '-', '/', '%', 'in'),
        tie('expression'),
      )
      .map(([left, operator, right]) => `(${left} ${operator} ${right})`),
    tie('expression').map((inner) => `!(${inner})`),
    tie('path').map((path) => `has(${path}.a)`),
    tie('path').map((path) => `size(${path})`),
    tie('path').map((path) => `${path}[0]`),
    fc
      .tuple(tie('expression'), tie('expression'), tie('expression'))
      .map(([condition, yes, no]) => `(${condition} ? ${yes} : ${no})`),
    fc
      .tuple(tie('range'), fc.constantFrom('exists', 'all', 'map', 'filter', 'exists_one'), tie('expression'))
      .map(([range, macro, body]) => `${range}.${macro}(x, ${body})`),
  ),
}))

/** What the library gives for the expression as it stands, without our rewriting. */
function plain(text: string, event: ReturnType<typeof finding>): unknown {
  const value = withView(undefined, () =>
    plan(ENVIRONMENT, parse(text))({ data: toCelValue(event.data), x: toCelValue(event.data) }),
  )
  if (isCelError(value)) return 'problem'
  try {
    return toJsonValue(value)
  } catch {
    return 'problem'
  }
}

/** The expression; undefined where its macros are deeper than the checker permits. */
function compiledOf(text: string): Expression | undefined {
  try {
    return compileExpression(text, { types: new Set(['unknown']) })
  } catch (error) {
    if (error instanceof ExpressionError && error.message.includes('deep')) return undefined
    throw error
  }
}

describe('hoisting', () => {
  it('changes no value of an expression', () => {
    let values = 0
    fc.assert(
      fc.property(expression, json, (body, content) => {
        // At the top, `x` is a variable of a macro with one member.
        const text = `[data].map(x, ${body})`
        const event = finding()
        Object.assign(event.data as object, { output: { content, basis: [] } })
        const expected = plain(text, event)
        const compiled = compiledOf(text)
        if (compiled === undefined) return
        const actual = compiled.evaluate(viewOf(event))
        if (expected !== 'problem') values++
        expect(actual instanceof Problem ? 'problem' : actual).toEqual(expected)
      }),
      { numRuns: 1_000 },
    )
    expect(values).toBeGreaterThan(100)
  }, 120_000)

  it('keeps the values that the library itself gives, where CEL has one', () => {
    let values = 0
    fc.assert(
      fc.property(expression, (body) => {
        const text = `[{'a': 1, 'b': {'a': 'a'}}].map(x, ${body.replaceAll('data.output.content', 'x').replaceAll('data.output', 'x')})`
        const theirs = plan(celEnv(), parse(text))()
        if (isCelError(theirs)) return
        const ours = compiledOf(text)
        if (ours === undefined) return
        values++
        expect(ours.evaluate(viewOf(finding()))).toEqual(toJsonValue(theirs))
      }),
      { numRuns: 700 },
    )
    expect(values).toBeGreaterThan(70)
  })
})
