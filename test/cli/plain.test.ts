import { describe, expect, it } from 'vitest'
import { oneLine, withoutMarks } from '../../src/cli/plain.ts'

describe('text of others on one line', () => {
  it('has neither line breaks nor what a terminal would obey', () => {
    expect(oneLine('a\r\nb \u001B[2J\u001B]0;title\u0007c\u0007\td', 80)).toBe('a b c d')
  })

  it('is cut where it is too long, and not through a character', () => {
    expect(oneLine('abcdef', 6)).toBe('abcdef')
    expect(oneLine('abcdefg', 6)).toBe('abcde…')
    expect(oneLine('abcd\u{1F525}fg', 6).isWellFormed()).toBe(true)
  })
})

describe('Markdown without its marks', () => {
  it('reads like text', () => {
    const markdown =
      '# Title\n[![badge](a.svg)](https://a) A **bold** `word` and a [link](https://b).\n> said'

    expect(oneLine(withoutMarks(markdown), 200)).toBe('Title A bold word and a link. said')
  })

  it('knows addresses that have brackets in them', () => {
    const markdown = '[![version](<v.svg?label=npm%20(stable)>)](<https://a/(b)>) A [link](<https://b/(c)>).'

    expect(oneLine(withoutMarks(markdown), 200)).toBe('A link.')
  })

  it('knows addresses that have brackets in them, without others around', () => {
    const markdown = '![map](m_(old).png) See [rivulets](https://a/Rivulet_(stream)) and [more](https://b).'

    expect(oneLine(withoutMarks(markdown), 200)).toBe('See rivulets and more.')
  })

  it('keeps paragraphs apart, and what is compared', () => {
    expect(withoutMarks('a < b and c > d\n\n> said\n\n\n# Title\n\nText')).toBe(
      'a < b and c > d\n\nsaid\n\n\nTitle\n\nText',
    )
  })

  it.each(['<', '![', '[', '[a](', '![a](', '[a](<', '<h1 ', '<img alt="', '\n', '[a](b(', '[a](b()'])(
    'takes time in proportion to a text of nothing but %j',
    (part) => {
      // Time that grows with the square of the length is seconds to minutes here, beyond what a test may take.
      const text = part.repeat(100_000)

      expect(withoutMarks(text).length).toBeLessThanOrEqual(text.length)
    },
  )
})
