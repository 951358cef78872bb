import { describe, expect, it } from 'vitest'
import { oneLine, plainLines, withoutMarkup } from '../../src/cli/plain.ts'

describe('untrusted text on one line', () => {
  it('has neither line breaks nor control sequences', () => {
    expect(oneLine('a\r\nb \u001B[2J\u001B]0;title\u0007c\u0007\td', 80)).toBe('a b c d')
  })

  it('is truncated where it is too long, but not within a character', () => {
    expect(oneLine('abcdef', 6)).toBe('abcdef')
    expect(oneLine('abcdefg', 6)).toBe('abcde…')
    expect(oneLine('abcd\u{1F525}fg', 6).isWellFormed()).toBe(true)
  })
})

describe('untrusted text of several lines', () => {
  it('keeps its lines, without control sequences', () => {
    expect(plainLines('a\r\n\tb \u001B[2J\u001B]0;title\u0007c\u0007\nd\re')).toBe('a\n\tb c \nd\ne')
  })
})

describe('Markdown as plain text', () => {
  it('reads like text', () => {
    const markdown =
      '# Title\n[![badge](a.svg)](https://a) A **bold** `word` and a [link](https://b).\n> said'

    expect(oneLine(withoutMarkup(markdown), 200)).toBe('Title A bold word and a link. said')
  })

  it('removes addresses that contain brackets', () => {
    const markdown = '[![version](<v.svg?label=npm%20(stable)>)](<https://a/(b)>) A [link](<https://b/(c)>).'

    expect(oneLine(withoutMarkup(markdown), 200)).toBe('A link.')
  })

  it('removes addresses that contain brackets, without others around', () => {
    const markdown = '![map](m_(old).png) See [rivulets](https://a/Rivulet_(stream)) and [more](https://b).'

    expect(oneLine(withoutMarkup(markdown), 200)).toBe('See rivulets and more.')
  })

  it('keeps paragraphs and comparison operators', () => {
    expect(withoutMarkup('a < b and c > d\n\n> said\n\n\n# Title\n\nText')).toBe(
      'a < b and c > d\n\nsaid\n\n\nTitle\n\nText',
    )
  })

  it.each(['<', '![', '[', '[a](', '![a](', '[a](<', '<h1 ', '<img alt="', '\n', '[a](b(', '[a](b()'])(
    'takes time linear in the length of a text of only %j',
    (part) => {
      // Quadratic time would be seconds to minutes here, above the timeout of a test.
      const text = part.repeat(100_000)

      expect(withoutMarkup(text).length).toBeLessThanOrEqual(text.length)
    },
  )
})
