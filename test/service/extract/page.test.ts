import { expect, it } from 'vitest'
import { readPage } from '../../../src/service/extract/page.ts'

it('cuts the text of a page whose Markdown is far longer than its HTML', () => {
  const body = Buffer.from('<a href=x>y</a>'.repeat(3_000))
  const url = `https://example.org/${'p'.repeat(2_000)}/`

  const { text } = readPage({ mediaType: 'text/html', contentType: 'text/html', body, url })

  expect(text.length).toBe(4 * 2 ** 20)
})
