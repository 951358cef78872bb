import { array, assert, nat, property, stringMatching } from 'fast-check'
import { memoryStore } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { offsetOf, positionOf } from '../../../src/gateway/durable-streams/offset.ts'
import { append } from '../../log/append.ts'
import { scratchFile } from '../../log/sqlite/scratch.ts'
import { change } from '../../operators/events.ts'

const epochs = stringMatching(/^[0-9a-z]{1,20}$/)
const numbers = nat(Number.MAX_SAFE_INTEGER)

describe('an offset', () => {
  it('is compared as a text, as the positions are in the log', () => {
    assert(
      property(epochs, numbers, numbers, (epoch, a, b) => {
        const [first, second] = [offsetOf(`${epoch}.${a}`), offsetOf(`${epoch}.${b}`)]
        expect(first < second).toBe(a < b)
        expect(first === second).toBe(a === b)
      }),
    )
  })

  it('gives its position back, and so does the position itself', () => {
    assert(
      property(epochs, array(numbers, { minLength: 1, maxLength: 9 }), (epoch, parts) => {
        const position = `${epoch}:${parts.join('-')}`
        expect(positionOf(offsetOf(position))).toBe(position)
        expect(positionOf(position)).toBe(position)
      }),
    )
  })

  it.each([
    [
      '',
      'a',
      '1',
      'a.',
      '.1',
      'a.1-',
      'a.b',
      'a.1 ',
      ' a.1',
      'a.1\n',
      'a,1.1',
      '../a.1',
      'a.1/..',
      'a.1\u0000',
      'a.-1',
    ],
    ['a.1.2.3', 'a.1.', 'A.1', `a.${'1'.repeat(17)}`, `${'a'.repeat(65)}.1`, '0_0', 'now', '-1'],
  ])('is none of %j and such', (...texts) => {
    expect(texts.map(positionOf)).toEqual(texts.map(() => undefined))
  })

  it.each([
    ['in memory', () => memoryStore()],
    ['in SQLite', () => sqliteStore(scratchFile())],
  ])('exists for each position of a log %s, in their order', async (_, open) => {
    const store = open()
    onTestFinished(() => store.close())
    const start = await store.positionAt('start')
    await append(
      store,
      Array.from({ length: 12 }, (_each, index) => change(`${index}`)),
    )
    const { entries } = await store.read(start, { limit: 100 })

    const positions = [start, ...entries.map(({ position }) => position)]
    const offsets = positions.map(offsetOf)

    expect(offsets.toSorted()).toEqual(offsets)
    expect(offsets.map(positionOf)).toEqual(positions)
    expect(offsets.every((offset) => /^[\w.:-]{1,255}$/.test(offset))).toBe(true)
  })
})
