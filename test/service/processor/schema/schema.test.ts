import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readSchema } from '../../../../src/service/processor/schema/schema.ts'

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
    expect(messagesOf({ properties: { deep: { properties: { name: { not: {} } } } } })).toEqual([
      'deep.name: the keyword not is not used to find an answer',
    ])
  })

  it('merges the parts of allOf, with the stricter of two limits', () => {
    const { fields } = readSchema({
      allOf: [
        { properties: { a: { type: 'number', minimum: 2 }, b: { enum: ['x', 'y'] } }, required: ['a'] },
        { properties: { a: { type: 'integer', minimum: 1, maximum: 9 }, b: { enum: ['y', 'z'] } } },
      ],
    })
    expect(fields).toMatchObject([
      { name: 'a', kind: 'integer', minimum: 2, maximum: 9, required: true },
      { name: 'b', allowed: ['y'], sole: { value: 'y' }, required: false },
    ])
  })

  it('reads every alternative of anyOf, oneOf and a list of types', () => {
    const alternatives = (property: unknown) => {
      const [field] = readSchema({ properties: { a: property } }).fields
      return [field, ...(field?.alternatives ?? [])].map((one) => [one?.kind, one?.nullable])
    }
    expect(alternatives({ anyOf: [{ type: 'integer' }, { type: 'string' }, { type: 'null' }] })).toEqual([
      ['integer', true],
      ['string', true],
    ])
    expect(alternatives({ oneOf: [{ type: 'boolean' }, { type: 'array' }] })).toEqual([
      ['boolean', false],
      ['array', false],
    ])
    expect(alternatives({ type: ['number', 'string', 'null'] })).toEqual([
      ['number', true],
      ['string', true],
    ])
  })

  it('treats a type without null as not nullable, whatever its values are', () => {
    expect(readSchema({ properties: { a: { type: 'string', enum: ['x', null] } } }).fields[0]?.nullable).toBe(
      false,
    )
    expect(
      readSchema({ properties: { a: { type: ['string', 'null'], enum: ['x'] } } }).fields[0]?.nullable,
    ).toBe(false)
  })

  it('is bounded for definitions that double at each step', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => {
        const next = { $ref: `#/$defs/d${index + 1}` }
        return [`d${index}`, { allOf: [next, next], anyOf: [next, next, next] }]
      }),
    )
    expect(messagesOf({ properties: { a: { $ref: '#/$defs/d0' } }, $defs }).join()).toContain('too large')
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
    [{ properties: { a: { items: { type: 'array' } } } }, 'stays empty'],
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
