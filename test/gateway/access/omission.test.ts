import { describe, expect, it } from 'vitest'
import { Omission } from '../../../src/gateway/access/omission.ts'

/** Without the fields, through JSON, as a frame has it. */
function without(paths: readonly string[], json: string): string {
  return JSON.stringify(new Omission(paths).of(JSON.parse(json)))
}

describe('omitted fields', () => {
  it.each([
    [
      'a name at any depth',
      ['secret'],
      '{"a":1,"secret":2,"b":{"secret":3,"c":[{"secret":4}]}}',
      '{"a":1,"b":{"c":[{}]}}',
    ],
    [
      'a path only as a whole',
      ['output.basis'],
      '{"basis":1,"output":{"basis":2,"x":3}}',
      '{"basis":1,"output":{"x":3}}',
    ],
    [
      'a path that begins at any depth',
      ['output.basis'],
      '{"run":{"output":{"basis":1}}}',
      '{"run":{"output":{}}}',
    ],
    ['a path through arrays', ['a.b'], '{"a":[[{"b":1,"c":2}]]}', '{"a":[[{"c":2}]]}'],
    ['a path with another name between', ['a.b'], '{"a":{"x":{"b":1}}}', '{"a":{"x":{"b":1}}}'],
    ['a path whose beginning repeats', ['a.a.b'], '{"a":{"a":{"a":{"b":1}}}}', '{"a":{"a":{"a":{}}}}'],
    ['the shorter of two paths', ['a.b', 'a'], '{"a":{"b":1,"c":2}}', '{}'],
    ['elements of a list at the top', ['a'], '[{"a":1},[{"a":2}]]', '[{},[{}]]'],
    ['a key of a record that has the dot in it', ['a.b'], '{"a.b":1}', '{}'],
    ['__proto__', ['__proto__'], '{"__proto__":{"x":1},"y":1}', '{"y":1}'],
    ['constructor', ['constructor.name'], '{"constructor":{"name":1,"x":1}}', '{"constructor":{"x":1}}'],
    ['the value of toString', ['toString'], '{"toString":1}', '{}'],
    ['nothing of an empty list', [], '{"a":1}', '{"a":1}'],
    ['nothing of a text', ['length'], '"text"', '"text"'],
    ['nothing of null', ['a'], 'null', 'null'],
    ['a number as a name, but no index of a list', ['0'], '{"0":1,"a":["x"]}', '{"a":["x"]}'],
  ])('%s', (_, paths, json, expected) => {
    expect(without(paths, json)).toBe(expected)
  })

  it('a field named __proto__ stays a field, and sets no prototype', () => {
    const copy = new Omission(['x']).of(JSON.parse('{"__proto__":{"admin":true},"x":1}'))

    expect(JSON.stringify(copy)).toBe('{"__proto__":{"admin":true}}')
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    expect(Object(copy).admin).toBeUndefined()
  })

  it('is the value itself where nothing is omitted', () => {
    const value = { a: 1 }

    expect(new Omission([]).of(value)).toBe(value)
  })

  it('leaves the value as it was', () => {
    const value = { a: 1, b: [{ a: 2 }] }
    new Omission(['a']).of(value)

    expect(value).toEqual({ a: 1, b: [{ a: 2 }] })
  })

  it('copies a value of any depth, in time linear in it', () => {
    const depth = 200_000
    const value: unknown = JSON.parse('{"a":'.repeat(depth) + '1' + '}'.repeat(depth))
    // As many begun paths at each level as there can be.
    let copy = new Omission([Array.from({ length: 16 }, () => 'a').join('.') + 'x', 'b']).of(value)

    let levels = 0
    while (typeof copy === 'object' && copy !== null) {
      copy = Reflect.get(copy, 'a')
      levels += 1
    }
    expect(levels).toBe(depth)
  })

  it('has the same shape for the same fields, in any order', () => {
    expect(new Omission(['b', 'a', 'b']).shape).toBe(new Omission(['a', 'b']).shape)
    expect(new Omission(['a']).shape).not.toBe(new Omission(['a.b']).shape)
  })
})
