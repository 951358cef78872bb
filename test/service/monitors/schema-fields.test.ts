import { describe, expect, it } from 'vitest'
import type { Passage } from '../../../src/service/corpus/corpus.ts'
import { passageOutput } from '../../../src/service/monitors/output.ts'
import { schemaFaults } from '../../../src/service/monitors/schema-fields.ts'

const passage: Passage = {
  url: 'https://example.org/a',
  title: 'A title',
  publishDate: null,
  text: 'Solid batteries are here.',
  hash: 'h',
  score: 1,
}

const string = { type: 'string' }
const nullable = { type: ['string', 'null'] }

function contentFor(properties: Readonly<Record<string, unknown>>): unknown {
  return passageOutput(passage, 'Because.', { type: 'json', json_schema: { type: 'object', properties } })
    .content
}

describe('a JSON output', () => {
  it('fills fields named for URL and title, and others with the passage', () => {
    const content = contentFor({ source_url: string, headline: string, summary: string, change: {} })

    expect(content).toEqual({
      source_url: passage.url,
      headline: passage.title,
      summary: passage.text,
      change: passage.text,
    })
  })

  it('omits fields that it cannot fill, or sets them to null if allowed', () => {
    const content = contentFor({
      date: string,
      published: nullable,
      count: { type: 'integer' },
      price: { type: ['number', 'null'] },
    })

    expect(content).toEqual({ published: null, price: null })
  })

  it('does not fill a field with further restrictions', () => {
    const content = contentFor({
      kind: { type: 'string', enum: ['a', 'b'] },
      when: { type: 'string', format: 'date-time' },
    })

    expect(content).toEqual({})
  })

  it('has a basis for each field of its content, with a verbatim citation', () => {
    const schema = { properties: { text: string, date: nullable } }
    const { basis } = passageOutput(passage, 'Because.', { type: 'json', json_schema: schema })

    const citations = [{ url: passage.url, title: passage.title, excerpts: [passage.text] }]
    expect(basis).toMatchObject([
      { field: 'text', citations, confidence: 'high' },
      { field: 'date', citations, confidence: 'low' },
    ])
  })
})

describe('the faults of a schema', () => {
  it.each([
    ['a list', { type: 'array', items: {} }],
    ['an object without named fields', { type: 'object' }],
  ])('include that it describes %s', (_, schema) => {
    expect(schemaFaults(schema)).toEqual([{ reason: expect.stringContaining('properties') }])
  })

  it('name each required field that a passage may not fill', () => {
    const properties = { text: string, count: { type: 'integer' }, date: string, published: nullable }
    const required = ['text', 'count', 'date', 'published', 'ghost']

    expect(schemaFaults({ properties, required }).map(({ field }) => field)).toEqual([
      'count',
      'date',
      'ghost',
    ])
  })
})
