import { describe, expect, it } from 'vitest'
import type { TaskOutput } from '../../../src/protocol/output.ts'
import { changedOutput } from '../../../src/service/monitors/changed-output.ts'
import { basis, json, text } from './tracked-runs.ts'

const NEW_URL = 'https://new.example.org/'

describe('the changed output', () => {
  it('has only the fields that changed, each with its new basis', () => {
    const before = json({ name: 'Solid Cells AG', ceo: 'Anna Keller', plants: 2 })
    const after = json({ name: 'Solid Cells AG', ceo: 'Max Meier', plants: 2 }, NEW_URL)

    expect(changedOutput(before, after)).toEqual({
      type: 'json',
      content: { ceo: 'Max Meier' },
      basis: [basis('ceo', NEW_URL)],
    })
  })

  it('has a text as a whole', () => {
    expect(changedOutput(text('one'), text('two'))).toEqual(text('two'))
  })

  it('has the whole output when its type changed', () => {
    expect(changedOutput(text('{}'), json({ a: 1 }))).toEqual(json({ a: 1 }))
  })

  it.each<[string, TaskOutput, TaskOutput]>([
    ['the same text with other citations', text('one'), text('one', NEW_URL)],
    ['the same fields with other citations', json({ a: 1 }), json({ a: 1 }, NEW_URL)],
    ['objects whose members have another order', json({ a: { x: 1, y: 2 } }), json({ a: { y: 2, x: 1 } })],
    ['fields in another order', json({ a: 1, b: 2 }), json({ b: 2, a: 1 })],
    ['two empty objects', json({}), json({})],
  ])('is none for %s', (_, before, after) => {
    expect(changedOutput(before, after)).toBeUndefined()
  })

  it.each<[string, unknown, unknown]>([
    ['a number and its text', 1, '1'],
    ['null and an empty text', null, ''],
    ['a list in another order', [1, 2], [2, 1]],
    ['a nested value', { a: [{ b: 1 }] }, { a: [{ b: 2 }] }],
  ])('distinguishes %s', (_, before, after) => {
    expect(changedOutput(json({ a: before }), json({ a: after }))?.content).toEqual({ a: after })
  })

  it('has a field that was added', () => {
    expect(changedOutput(json({ a: 1 }), json({ a: 1, b: null }))?.content).toEqual({ b: null })
  })

  it('has the basis of a field that disappeared, and no content of it', () => {
    const changed = changedOutput(json({ a: 1, b: 2 }), json({ a: 1 }))

    expect(changed?.content).toEqual({})
    expect(changed?.basis).toEqual([
      expect.objectContaining({ field: 'b', reasoning: 'The output no longer has this field.' }),
    ])
  })

  it('has the basis that the new output gives for a field that disappeared', () => {
    const after: TaskOutput = { type: 'json', content: {}, basis: [basis('b', NEW_URL)] }

    expect(changedOutput(json({ b: 2 }), after)?.basis).toEqual([basis('b', NEW_URL)])
  })

  it('has the basis of the elements of a changed list, and not that of a field with a similar name', () => {
    const names = ['plants', 'plants.0', 'plants[1].city', 'plantsTotal', 'plants.count']
    const content = { plants: ['Aarau', 'Bern'], plantsTotal: 2, 'plants.count': 2 }
    const after: TaskOutput = { type: 'json', content, basis: names.map((name) => basis(name)) }
    const before: TaskOutput = { ...after, content: { ...content, plants: [] } }

    expect(changedOutput(before, after)?.basis.map(({ field }) => field)).toEqual([
      'plants',
      'plants.0',
      'plants[1].city',
    ])
  })

  it('has fields with the names of an object prototype', () => {
    const before = json(JSON.parse('{"__proto__": 1, "constructor": 1}'))
    const after = json(JSON.parse('{"__proto__": 2, "constructor": 1}'))

    expect(Object.entries(changedOutput(before, after)?.content ?? {})).toEqual([['__proto__', 2]])
  })
})
