import { expect, it, vi } from 'vitest'
import { openPageInJsdom } from '../support/page-in-jsdom.ts'
import { follow, patternOf } from './tutorial.ts'

// It indexes documents, and bundles a page.
const TIMEOUT = 600_000
const WAIT = { timeout: 60_000 }

it(
  'the tutorial of a page works as it is written: the page is live, and keeps its rows when its server is gone',
  async () => {
    let page: Document | undefined
    const seen: string[][] = []
    const lines = () => Array.from(page?.querySelectorAll('p') ?? [], ({ textContent }) => textContent)

    const outputs = await follow({
      page: 'page.md',
      folder: 'questions',
      port: '3000',
      sees: async (output, terminal) => {
        if (page === undefined) {
          page = await openPageInJsdom(await terminal.shows(output))
          return
        }
        const patterns = output
          .trim()
          .split('\n')
          .map((line) => expect.stringMatching(`^${patternOf(line)}$`))
        // The answers come in any order, after the states of their runs.
        await vi.waitFor(() => expect(lines()).toEqual(expect.arrayContaining(patterns)), WAIT)
        seen.push(lines())
      },
    })

    const [[, ...rows] = [], cut] = seen
    expect(cut).toEqual(['stale', ...rows])
    expect(rows).toHaveLength(2)
    expect(outputs).toBe(3)
  },
  TIMEOUT,
)
