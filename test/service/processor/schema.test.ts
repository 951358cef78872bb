import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readSchema } from '../../../src/service/processor/schema.ts'

const kindsOf = (properties: Record<string, unknown>, rest = {}) =>
  Object.fromEntries(readSchema({ properties, ...rest }).fields.map((field) => [field.name, field.kind]))
const messagesOf = (schema: Record<string, unknown>) =>
  readSchema(schema).warnings.map(({ message }) => message)

describe('readSchema', () => {
  it('reads the kind of each field, also if the type is implied', () => {
    expect(
      kindsOf({
        a: { type: 'integer' },
        b: { type: ['null', 'number'] },
        c: { enum: ['x'] },
        d: { const: true },
        e: { items: {} },
        f: { properties: {} },
        g: true,
        h: { type: 'nonsense' },
      }),
    ).toEqual({
      a: 'integer',
      b: 'number',
      c: 'string',
      d: 'boolean',
      e: 'array',
      f: 'object',
      g: 'string',
      h: 'string',
    })
  })

  it.each([
    [{ type: ['string', 'null'] }],
    [{ anyOf: [{ type: 'null' }, { type: 'string' }] }],
    [{ $ref: '#/$defs/name' }],
    [{ enum: ['a', null] }],
  ])('treats %j as nullable', (property) => {
    const $defs = { name: { oneOf: [{ type: 'string' }, { type: 'null' }] } }
    expect(readSchema({ properties: { a: property }, $defs }).fields[0]).toMatchObject({
      kind: 'string',
      nullable: true,
    })
  })

  it('warns of unknown keywords', () => {
    expect(messagesOf({ properties: { deep: { properties: { name: { pattern: '^a' } } } } })).toEqual([
      'deep.name: the keyword pattern is ignored',
    ])
  })

  it('limits its warnings, for any number of fields that refer to one definition', () => {
    const wrong = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`keyword_${index}`, 1]))
    const properties = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`field_${index}`, { $ref: '#/$defs/wrong' }]),
    )
    expect(messagesOf({ properties, $defs: { wrong } })).toHaveLength(50)
  })

  it.each([
    [{}, 'names no properties'],
    [{ properties: { a: { $ref: '#/$defs/none' } } }, 'cannot be resolved'],
    [{ properties: { a: { $ref: 'https://x.example' } } }, 'cannot be resolved'],
    [{ properties: { a: { $ref: '#/properties/a' } } }, 'circular'],
    [{ properties: { a: { anyOf: [{ type: 'string' }, { type: 'number' }] } } }, 'only the first'],
    [{ properties: { a: { items: { type: 'object' } } } }, 'stays empty'],
  ])('warns that %j is not supported', (schema, message) => {
    expect(messagesOf(schema).join()).toContain(message)
  })

  it('terminates for a schema that contains itself', () => {
    const schema = {
      $defs: { node: { properties: { child: { $ref: '#/$defs/node' } } } },
      $ref: '#/$defs/node',
    }
    expect(messagesOf(schema).join()).toContain('levels deep')
  })

  it('reads at most a hundred fields', () => {
    const properties = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`f${i}`, {}]))
    const { fields, warnings } = readSchema({ properties })
    expect(fields).toHaveLength(100)
    expect(warnings[0]?.message).toContain('more than 100 fields')
  })

  it('accepts any JSON object', () => {
    const names = fc.constantFrom(
      'type',
      'properties',
      '$ref',
      'anyOf',
      'items',
      'enum',
      'const',
      'required',
      'a',
      '#',
      '__proto__',
    )
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, true, 1, 'object', 'array', 'null', '#', '#/properties/a', ''),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(names, tie('tree'), { maxKeys: 5 }),
      ),
    }))
    fc.assert(
      fc.property(fc.dictionary(names, tree), (schema) => {
        expect(readSchema(schema).fields.length).toBeLessThanOrEqual(100)
      }),
    )
  })
})
