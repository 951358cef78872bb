import { describe, expect, it } from 'vitest'
import { patternOf } from '../../../src/rules/cel/pattern.ts'
import { compileExpression, Problem, type EventView } from '../../../src/rules/cel/index.ts'
import { found } from './event.ts'

const MEGABYTE = 1024 * 1024

/** The value of an expression in which `C` is the content of the output. */
function evaluate(
  text: string,
  content: Readonly<Record<string, unknown>>,
  view: EventView = found(content),
) {
  return compileExpression(text.replaceAll('C', 'data.output.content')).evaluate(view)
}

const error = (part: string) =>
  expect.objectContaining({ kind: 'error', detail: expect.stringContaining(part) })

function nested(depth: number, around: (inner: unknown) => unknown): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = around(value)
  return value
}

/** Letters `a` and `b` in no order that repeats. */
function mixedText(length: number): string {
  let seed = 1
  return Array.from({ length }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return seed & 0x10_000 ? 'a' : 'b'
  }).join('')
}

describe('hostile input', () => {
  it('is searched in linear time, in 256 kB of it', () => {
    const view = found({ x: `${'a'.repeat(MEGABYTE)}!` })
    expect(evaluate("C.x.matches('^(a+)+$')", {}, view)).toBe(true)
    expect(view.isCut).toBe(true)
    expect(evaluate("C.x.matches('^(a+)+$')", { x: `${'a'.repeat(1_000)}!` })).toBe(false)
  })

  it('gets no answer from a pattern that would need too many states, and the pattern can be used again', () => {
    const pattern = "C.x.matches('[ab]*a[ab]{40}[ac]$')"
    for (let round = 0; round < 8; round++) {
      expect(evaluate(pattern, { x: mixedText(20_000) })).toEqual(error('too many states'))
    }
    expect(evaluate(pattern, { x: `a${'b'.repeat(40)}c` })).toBe(true)
    expect(evaluate(pattern, { x: `b${'b'.repeat(40)}c` })).toBe(false)
  })

  it('cannot make patterns read without an end', () => {
    const matches = Array.from({ length: 20 }, (_, index) => `C.x.matches('z${index}')`).join(' || ')
    expect(evaluate(matches, { x: 'a'.repeat(MEGABYTE) })).toEqual(error('more work'))
  })

  it.each(['^a', 'a$', String.raw`\ba\b`, 'a|^b', '(?m)^b$', String.raw`\Aa\z`])(
    'is searched as the library does, with remembered assertions: %s',
    (pattern) => {
      const texts = ['', 'a', 'b', 'ab', 'ba', 'a b', 'b\na', 'x a', 'b\nb', 'aa']
      const own = patternOf(pattern)
      const native = new RegExp(
        pattern.replace('(?m)', '').replace('\\A', '^').replace('\\z', '$'),
        pattern.startsWith('(?m)') ? 'm' : '',
      )
      expect(texts.map((text) => own.test(text))).toEqual(texts.map((text) => native.test(text)))
    },
  )

  it('can be as deep as it likes', () => {
    const objects = { d: nested(4_000, (a) => ({ a })), e: nested(4_000, (a) => ({ a })), other: 1 }
    const lists = { d: nested(4_000, (a) => [a]), e: nested(3_999, (a) => [a]) }
    expect(evaluate('text(C)', objects)).toBe('Acme 3 0.5 1 2 3 1 1 1')
    expect(evaluate('C.d == C.e', objects)).toBe(true)
    expect(evaluate('C.d.a.a.a != C.e', objects)).toBe(true)
    expect(evaluate('C.d', objects)).toEqual(error('64 deep'))
    expect(evaluate('C.d == C.e', lists)).toBe(false)
    expect(evaluate('C.d', lists)).toEqual(error('64 deep'))
  })

  it('is compared and visited up to a bound', () => {
    const many = {
      l: Array.from({ length: 60_000 }, (_, i) => i),
      m: Array.from({ length: 60_000 }, (_, i) => i),
    }
    expect(evaluate('C.l == C.m', many)).toBe(true)
    expect(evaluate('C.l.exists(x, x == 0)', many)).toEqual(error('1000 members'))
    expect(evaluate('size(C.l)', many)).toBe(60_000)
    expect(evaluate('59999 in C.l', many)).toBe(true)
    const few = { l: Array.from({ length: 70 }, (_, i) => i) }
    expect(evaluate('C.l.all(x, C.l.all(y, x + y >= 0))', few)).toEqual(error('more than 1000'))
    const list = Array.from({ length: 1_000 }, (_, i) => i)
    expect(evaluate(`C.l.all(x, [${'x + 1,'.repeat(300)}1].size() > 0)`, { l: list })).toEqual(
      error('more work'),
    )
    expect(evaluate('C.l.map(x, x)', { l: list })).toEqual(list)
    expect(evaluate('size(C.l.filter(x, x >= 500))', { l: list })).toBe(500)
  })

  it('has a result and a text of a bounded number of values', () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i]))
    const view = found({ many })

    expect(evaluate('C.many', {}, view)).toEqual(error('10000 values'))
    expect(evaluate('size(C.many)', {}, view)).toBe(100_000)
    expect(evaluate("text(C.many).endsWith('19999')", {}, view)).toBe(true)
    expect(view.isCut).toBe(true)
  })

  it('cannot make a text grow without an end', () => {
    const x = 'a'.repeat(MEGABYTE)
    expect(evaluate('C.x + C.x', { x })).toEqual(error('is made'))
    expect(evaluate('C.x.replace("a", C.x)', { x })).toEqual(error('10000 places'))
    expect(evaluate('"aaaa".replace("a", C.x)', { x })).toEqual(error('is made'))
    expect(evaluate('[C.x, C.x].join()', { x })).toEqual(error('is made'))
    expect(evaluate('C.x.split("")', { x })).toEqual(error('10000 parts'))
    expect(evaluate('int(C.x)', { x: '1'.repeat(MEGABYTE) })).toEqual(error('no int'))
  })

  it('does not fill the message of a problem', () => {
    const value = evaluate('bool(C.x)', { x: 'a'.repeat(MEGABYTE) })
    expect(value instanceof Problem && value.detail.length).toBe(300)
  })

  it('may have the names of an object prototype', () => {
    const content: unknown = JSON.parse(
      '{"constructor": null, "toString": 1, "hasOwnProperty": [{"__proto__": {"a": 1}}]}',
    )
    const x = { x: content }
    expect(evaluate('C.x.constructor == null && C.x.toString == 1', x)).toBe(true)
    expect(evaluate('C.x.hasOwnProperty[0].__proto__.a', x)).toBe(1)
    expect(evaluate('has(C.valueOf)', x)).toBe(false)
  })
})
