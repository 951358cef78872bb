import { expect, it } from 'vitest'
import { extractFrom } from '../../../src/service/processor/extract-from.ts'
import { isolatedWork } from '../isolated/isolated-work.ts'

const isolated = isolatedWork()
const PASSAGE = {
  url: 'https://docs.example/gauges.md',
  title: 'Gauges',
  text: 'The station of Lund was closed on 2026-03-04. It had 12 gauges.\n\nVisitors may park there.',
}

it('takes each field from the sentence of a given passage that answers it, and leaves the others empty', async () => {
  const schema = {
    properties: {
      closed: { type: 'string', format: 'date', description: 'Day when the station was closed' },
      gauges: { type: 'integer', description: 'Number of gauges' },
      budget: { type: ['integer', 'null'], description: 'Budget in euros' },
    },
  }
  const { signal } = new AbortController()
  const { output } = await extractFrom([PASSAGE], { schema, question: 'closed stations', isolated, signal })
  expect(output.content).toEqual({ closed: '2026-03-04', gauges: 12, budget: null })
  expect(output.basis[0]?.citations).toEqual([
    { url: PASSAGE.url, title: PASSAGE.title, excerpts: [PASSAGE.text] },
  ])
})
