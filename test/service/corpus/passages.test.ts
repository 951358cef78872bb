import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitPassages } from '../../../src/service/corpus/passages.ts'

const passagesOf = (text: string) => splitPassages(text).map(({ start, end }) => text.slice(start, end))
const prose = (words: number) => 'Lorem ipsum dolor sit amet. '.repeat(Math.ceil(words / 5)).trim()

describe('splitPassages', () => {
  it('keeps a heading with what follows it', () => {
    expect(passagesOf(`# Title\n\n${prose(60)}\n\n# Second\n\n${prose(60)}`)).toEqual([
      `# Title\n\n${prose(60)}`,
      `# Second\n\n${prose(60)}`,
    ])
  })

  it('recognises underlined headings', () => {
    expect(
      passagesOf('First\n=====\n\nabout one\n\nSecond\n------\n\nabout two\n\nThird\n===\n\nabout three'),
    ).toEqual(['First\n=====\n\nabout one\n\nSecond\n------\n\nabout two', 'Third\n===\n\nabout three'])
  })

  it('recognises an underlined heading whose section begins in the next line', () => {
    expect(passagesOf(`First\n=====\n${prose(60)}\n\nSecond\n======\n${prose(60)}`)).toEqual([
      `First\n=====\n${prose(60)}`,
      `Second\n======\n${prose(60)}`,
    ])
  })

  it('puts each section of the same level into its own passage, however short', () => {
    expect(passagesOf('## 1.1.0\n\n- adds a\n\n## 1.0.0\n\n- adds b')).toEqual([
      '## 1.1.0\n\n- adds a',
      '## 1.0.0\n\n- adds b',
    ])
  })

  it('merges short paragraphs', () => {
    expect(passagesOf('one\n\ntwo\n\nthree')).toEqual(['one\n\ntwo\n\nthree'])
  })

  it('does not split code, with its blank lines and comments', () => {
    const listing = '```sh\n# not a heading\n\nnpm install\n```'
    expect(passagesOf(`${prose(100)}\n\n${listing}\n\n${prose(100)}`)).toContainEqual(
      expect.stringContaining(listing),
    )
  })

  it('treats unclosed code as code up to the end of the text', () => {
    expect(passagesOf('```\n# a\n\nb')).toEqual(['```\n# a\n\nb'])
  })

  it('splits a long paragraph at the end of a sentence', () => {
    const passages = passagesOf(prose(1_000))
    expect(passages.length).toBeGreaterThan(3)
    for (const passage of passages) expect(passage).toMatch(/\.$/)
  })

  it('splits a long list between its items, and before and after code in an item', () => {
    const item = `- ${prose(60)}\n  ${prose(20)}`
    const [first, ...rest] = passagesOf(Array.from({ length: 12 }, () => item).join('\n'))
    expect(rest.length).toBeGreaterThan(3)
    for (const passage of [first, ...rest]) expect(passage?.split(item).join('').trim()).toBe('')

    const listing = `    \`\`\`\n    ${'let x = 1\n    '.repeat(100)}\`\`\``
    expect(passagesOf(`1. ${prose(60)}\n\n${listing}\n\n2. ${prose(60)}`)).toContain(listing.trim())
  })

  it('does not begin a passage at a heading in a comment', () => {
    const comment = '<!--\n# one\n\n# two\n-->'
    expect(passagesOf(`# Title\n\n${comment}`)).toEqual([`# Title\n\n${comment}`])
  })

  it('never splits a surrogate pair', () => {
    for (const passage of passagesOf('🌍'.repeat(3_000))) expect(passage.isWellFormed()).toBe(true)
  })

  it('covers any text verbatim, except for white space, within its limit', () => {
    const line = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 60 }),
      fc.constantFrom(
        '',
        '',
        '# a',
        '## b',
        '```',
        '~~~~',
        '---',
        '===',
        '- item',
        '> quote',
        '| a | b |',
        '\r',
      ),
      fc.string({ maxLength: 3_000, minLength: 900 }),
    )
    fc.assert(
      fc.property(fc.array(line, { maxLength: 40 }), (lines) => {
        const text = lines.join('\n').trim()
        let end = 0
        for (const span of splitPassages(text)) {
          expect(text.slice(end, span.start).trim()).toBe('')
          expect(span.end).toBeGreaterThan(span.start)
          expect(span.end - span.start).toBeLessThanOrEqual(2_400)
          end = span.end
        }
        expect(end).toBe(text.length)
      }),
    )
  })
})
