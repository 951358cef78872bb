import { describe, expect, it } from 'vitest'
import { suggestSchema } from '../../../../src/service/processor/schema/suggest.ts'

const nullable = (description: string) => ({ type: ['string', 'null'], description })

describe('the schema that an input suggests', () => {
  it.each<[unknown, string[]]>([
    ['the licence, version and author of undici', ['licence', 'version', 'author']],
    ['What are the licence and the version of undici?', ['licence', 'version']],
    ['List the licence and version of undici', ['licence', 'version']],
    ["undici's licence and version", ['licence', 'version']],
    ["What are undici's licence, version, and author?", ['licence', 'version', 'author']],
    ['Acme: founded, CEO, headquarters', ['founded', 'ceo', 'headquarters']],
    ['Acme Corporation: founded, the CEO and headquarters.', ['founded', 'ceo', 'headquarters']],
    [{ company: 'Acme', founded: null }, ['founded']],
    [{ company: 'Acme', founded: null, annual_revenue: '' }, ['founded', 'annual_revenue']],
    [{ company: 'Acme', fields: ['founded', 'CEO'] }, ['founded', 'CEO']],
  ])('has a field for each thing that is wanted: %j', (input, names) => {
    expect(suggestSchema(input)).toMatchObject({
      type: 'object',
      required: names,
      additionalProperties: false,
    })
    expect(Object.keys(Object(suggestSchema(input)?.['properties']))).toEqual(names)
  })

  it('describes a field in words', () => {
    expect(suggestSchema({ company: 'Acme', annual_revenue: null })?.['properties']).toEqual({
      annual_revenue: nullable('annual revenue'),
    })
  })

  it('has one list for several values of one thing', () => {
    expect(suggestSchema('List all the supported runtimes of undici')).toMatchObject({
      properties: {
        supported_runtimes: {
          type: ['array', 'null'],
          items: { type: 'string' },
          description: 'supported runtimes',
        },
      },
    })
  })

  it.each<[string, unknown]>([
    ['a question for one thing', 'What is the licence of undici?'],
    ['a sentence', 'rock and roll'],
    ['a time', 'Remind me at 10:30, 11:30 and 12:30'],
    ['a URL', 'https://example.org/a,b and c'],
    ['a sentence after a colon', 'My question: who founded the company Acme, and when did that happen?'],
    ['an item that is a sentence', 'Acme: founded, the person who is its CEO, headquarters'],
    ['a list of one', 'Acme: founded'],
    ['equal names', 'Acme: CEO, ceo'],
    ['an empty name', 'Acme: founded, , CEO'],
    ['a list without an owner', 'List the features'],
    ['a word that only ends in s, with a clause', 'List what the company does'],
    ['an object that names no subject', { founded: null, ceo: null }],
    ['an object without anything wanted', { company: 'Acme' }],
    ['a list of objects', [{ company: 'Acme', founded: null }]],
    ['an object whose fields are no names', { company: 'Acme', fields: [1, 2] }],
    ['too many fields', { company: 'Acme', fields: Array.from({ length: 13 }, (_, index) => `f${index}`) }],
    ['nothing', null],
  ])('is undefined for %s', (_, input) => {
    expect(suggestSchema(input)).toBeUndefined()
  })

  it.each([
    ['a, '.repeat(133)],
    [`Acme: ${'a '.repeat(190)}`],
    ["'s ".repeat(130)],
    [`list ${'a s '.repeat(90)}`],
    [`${'a-'.repeat(190)} and`],
  ])('is decided at once: %#', (input) => {
    const start = performance.now()
    suggestSchema(input)
    expect(performance.now() - start).toBeLessThan(5_000)
  })
})
