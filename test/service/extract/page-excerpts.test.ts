import { describe, expect, it } from 'vitest'
import { selectExcerpts } from '../../../src/service/extract/page-excerpts.ts'
import { eventLoopTurns } from '../../support/event-loop-turns.ts'

const BUDGET = { charactersPerResult: 1_000, excerptsPerResult: 4 }
const PARAGRAPH = 'The tide rises twice a day, and the wind has no part in it.\n\n'

function select(text: string, query: string): Promise<string[]> {
  return selectExcerpts({ text }, { queries: [query] }, BUDGET, new AbortController().signal)
}

describe('the excerpts of a page', () => {
  it('are selected while the event loop gets its turn', async () => {
    const text = `${PARAGRAPH.repeat(4_000)}A neap tide is small.`
    const selected = select(text, 'neap')

    expect(await eventLoopTurns(selected)).toBeGreaterThan(10)
    expect((await selected).join('\n')).toContain('A neap tide is small.')
  })

  it('are verbatim, wherever the text is split for the search', async () => {
    const paragraphs = Array.from(
      { length: 600 },
      (_, index) => `Number ${index} of the words w${index}x 🌊.`,
    )
    const text = paragraphs.join('\n\n')

    for (let index = 0; index < 600; index += 37) {
      const excerpts = await select(text, `w${index}x`)
      expect(excerpts.join('\n')).toContain(paragraphs[index])
      for (const excerpt of excerpts) expect(text).toContain(excerpt)
    }
  })

  it('are of a bounded number of passages, however many a page has', async () => {
    const headings = '# a\n'.repeat(20_000)

    expect(await select(`needle\n\n${headings}`, 'needle')).toEqual([expect.stringMatching(/^needle/)])
    expect(await select(`first\n\n${headings}needle`, 'needle')).toEqual([expect.stringMatching(/^first/)])
  })
})
