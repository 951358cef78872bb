import { lastValueFrom, of, toArray } from 'rxjs'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { inMemory } from 'rivulet/streams'
import type { ProcessFunctions } from 'rivulet/streams'
import { change } from '../operators/events.ts'

class Money {
  readonly cents = 5
}
class Items extends Array<number> {}

const nested = (depth: number): unknown => {
  let value: unknown = {}
  for (let level = 0; level < depth; level++) value = { value }
  return value
}
const circle: { list: unknown[] } = { list: [1] }
circle.list.push(circle)

/** Sets the value as a state, and appends the state that the next event gets. */
const keeping = (value: unknown): ProcessFunctions<unknown> => ({
  key: () => 'k',
  init: () => ({}),
  event(state, { id }, context) {
    if (id === '1') context.set(value)
    else context.append({ type: 'unknown', data: { state } })
  },
})

/** The value as a process gets it back. */
async function kept<State>(functions: ProcessFunctions<State>): Promise<unknown> {
  const events = await lastValueFrom(of(change('1'), change('2')).pipe(inMemory('p', functions), toArray()))
  return events[0]?.data
}

/** Starts a timer with this data, and appends the data that it is called with. */
const waiting = (data: unknown, maxStateBytes = 65_536): ProcessFunctions<null> => ({
  key: () => 'k',
  init: () => null,
  event: (_state, { id }, context) => {
    if (id === '1') context.timer('t', context.now() - 1, { data })
  },
  timer: (_state, _due, context, _name, given) =>
    context.append({ type: 'unknown', data: { isUndefined: given === undefined, given } }),
  maxStateBytes,
})

describe('the data of a timer', () => {
  it.each<[string, unknown]>([
    ['an object', { a: 'a\uD800\0', b: [1.5, -2], c: true, d: null }],
    ['null', null],
    ['a text', ''],
    ['as much as fits', 'é'.repeat(32_767)],
  ])('comes back as it is: %s', async (_what, data) => {
    expect(await kept(waiting(data))).toEqual({ isUndefined: false, given: data })
  })

  it('is undefined for a timer that was started without it', async () => {
    expect(await kept(waiting(undefined))).toEqual({ isUndefined: true })
  })

  it('is refused with the path if it is not JSON', async () => {
    await expect(kept(waiting({ list: [{ when: new Date(0) }] }))).rejects.toThrow(
      "its timer's data is not JSON: data.list[0].when is an instance of Date",
    )
  })

  it('is refused if it is larger than a state may be', async () => {
    await expect(kept(waiting('12345678', 9))).rejects.toThrow(
      "its timer's data of 10 bytes is over the limit of 9 (maxStateBytes)",
    )
  })
})

describe('a state', () => {
  it.each<[string, unknown, string]>([
    ['a Date', { items: [0, 1, 2, { when: new Date(0) }] }, 'state.items[3].when is an instance of Date'],
    ['a Map', { seen: new Map([[1, 2]]) }, 'state.seen is an instance of Map'],
    ['a Set', new Set([1]), 'state is an instance of Set'],
    ['an instance of a class', { price: new Money() }, 'state.price is an instance of Money'],
    ['an object with a prototype', Object.create({ inherited: 1 }), 'state is an instance of Object'],
    ['a kind of array', { items: Items.of(1) }, 'state.items is an instance of Items'],
    ['bytes', { bytes: new Uint8Array(2) }, 'state.bytes is an instance of Uint8Array'],
    ['an error', { last: new TypeError('no') }, 'state.last is an instance of TypeError'],
    ['a number as an object', { n: Object(1) }, 'state.n is an instance of Number'],
    ['undefined in an array', { list: [1, undefined] }, 'state.list[1] is undefined'],
    ['a hole in an array', { list: Object.assign([], { 1: 1 }) }, 'state.list[0] is undefined'],
    ['NaN', { mean: { 'of all': NaN } }, 'state.mean["of all"] is NaN'],
    ['Infinity', { least: Infinity }, 'state.least is Infinity'],
    ['a bigint', { sum: 1n }, 'state.sum is a bigint'],
    ['a function', { toJSON: () => 1 }, 'state.toJSON is a function'],
    ['a symbol', [Symbol('s')], 'state[0] is a symbol'],
    ['undefined', undefined, 'state is undefined'],
    ['a Date beside a circle', { when: new Date(0), circle }, 'state.when is an instance of Date'],
    ['itself', circle, 'circular'],
    ['a value that is nested too deeply', nested(100_000), 'call stack'],
    [
      'a getter that throws',
      {
        get bad() {
          throw new Error('no bad')
        },
      },
      'no bad',
    ],
  ])('of %s is refused, with the path', async (_what, value, message) => {
    const set = kept(keeping(value))
    await expect(set).rejects.toMatchObject({
      name: 'ProcessError',
      message: expect.stringContaining(`its state is not JSON: `),
    })
    await expect(set).rejects.toThrow(message)
    const began = kept({ ...keeping({}), init: () => value })
    await expect(began).rejects.toThrow(message)
  })

  it('shows the beginning of a path that is long', async () => {
    const long = { ['k'.repeat(10_000)]: NaN }
    await expect(kept(keeping(long))).rejects.toThrow(/state\.k{494} is NaN$/)
  })

  it.each<[string, unknown]>([
    ['texts, numbers, booleans and null', { a: 'a\uD800', b: [1.5, -2], c: true, d: null }],
    ['names of any kind', JSON.parse('{"__proto__":{"a":1},"constructor":2,"":3,"toString":4}')],
    ['objects without a prototype', Object.assign(Object.create(null), { a: 1 })],
    ['objects of another realm', runInNewContext('({ list: [{ a: 1 }] })')],
    ['one object in two places', [circle.list[0], circle.list[0]]],
    ['deep nesting', nested(2_000)],
  ])('of %s comes back as it is', async (_what, value) => {
    expect(JSON.stringify(await kept(keeping(value)))).toBe(JSON.stringify({ state: value }))
  })

  it('loses its properties that are undefined', async () => {
    expect(await kept(keeping({ a: 1, b: undefined }))).toStrictEqual({ state: { a: 1 } })
  })

  it('may be null at first', async () => {
    const functions = { ...keeping({}), init: () => null }
    expect(await kept(functions)).toEqual({ state: {} })
  })
})
