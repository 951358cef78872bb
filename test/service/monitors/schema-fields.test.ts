import { describe, expect, it } from 'vitest'
import type { Passage } from '../../../src/service/corpus/corpus.ts'
import { outputsOf } from '../../../src/service/monitors/output.ts'
import { schemaFaults } from '../../../src/service/monitors/schema-faults.ts'
import { isolatedWork } from '../isolated/isolated-work.ts'

const isolated = isolatedWork()
const passage: Passage = {
  url: 'https://example.org/a',
  title: 'A title',
  publishDate: null,
  kind: 'changelog',
  text: '# gauge: changes\n\n## 4.3.0 (2026-03-01)\n\n- The station of Lund has 12 gauges.\n- It was fixed.',
  hash: 'h',
  score: 1,
}
const statements = ['## 4.3.0 (2026-03-01)', '- The station of Lund has 12 gauges.']

const string = { type: 'string' }
const nullable = { type: ['string', 'null'] }

async function outputFor(properties: Readonly<Record<string, unknown>>, required: readonly string[] = []) {
  const { outputs, warnings } = await outputsOf(
    [{ passage, statements, reason: 'Because.' }],
    {
      query: 'new versions of gauge',
      output_schema: { type: 'json', json_schema: { type: 'object', properties, required } },
    },
    isolated,
    new AbortController().signal,
  )
  const [first] = outputs
  if (first?.output.type !== 'json') throw new Error('no JSON output')
  return { ...first.output, warnings }
}

describe('a JSON output', () => {
  it('has the values that the passage states, never the passage', async () => {
    const { content } = await outputFor({
      version: string,
      date: { type: 'string', format: 'date' },
      gauges: { type: 'integer', description: 'Number of gauges of the station' },
      summary: string,
      source_url: string,
      headline: string,
    })

    expect(content).toEqual({
      version: '4.3.0',
      date: '2026-03-01',
      gauges: 12,
      summary: 'The station of Lund has 12 gauges.',
      source_url: passage.url,
      headline: passage.title,
    })
  })

  it('omits what the passage does not state, or sets it to null if the schema allows it', async () => {
    const { content } = await outputFor({
      author: { type: 'string', description: 'Name of the author' },
      price: { type: ['number', 'null'], description: 'Price in euros' },
      published: nullable,
    })

    expect(content).toEqual({ price: null, published: null })
  })

  it('omits a required field that the passage does not state, with a warning', async () => {
    const { content, warnings } = await outputFor(
      { version: string, price: { type: 'integer', description: 'Price in euros' } },
      ['version', 'price'],
    )

    expect(content).toEqual({ version: '4.3.0' })
    expect(warnings).toMatchObject([{ type: 'warning', message: expect.stringContaining('price') }])
  })

  it('takes an allowed value only where the passage has it', async () => {
    const kinds = { type: 'string', description: 'Station', enum: ['Lund', 'Malmo'] }
    const others = { type: 'string', description: 'Station', enum: ['Oslo'] }

    expect((await outputFor({ kinds, others })).content).toEqual({ kinds: 'Lund' })
  })

  it('has a basis for each field of its content, with a verbatim citation where it has a value', async () => {
    const { basis } = await outputFor({
      version: string,
      gauges: { type: 'integer', description: 'Number of gauges' },
      price: { type: ['number', 'null'], description: 'Price in euros' },
    })

    const citations = [{ url: passage.url, title: passage.title, excerpts: [passage.text] }]
    expect(basis).toMatchObject([
      { field: 'version', citations, confidence: 'high' },
      { field: 'gauges', citations, confidence: expect.stringMatching(/^(?:low|medium)$/) },
      { field: 'price', citations: [], confidence: 'low' },
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

  it('name each required field that is not among the properties', () => {
    const properties = { text: string, count: { type: 'integer' }, date: string }

    expect(schemaFaults({ properties, required: ['text', 'count', 'date', 'ghost'] })).toEqual([
      { field: 'ghost', reason: expect.stringContaining('properties') },
    ])
  })
})
