import { describe, expect, it } from 'vitest'
import { jsonText } from '../../src/cli/json-text.ts'
import { oneLine, plain, withoutMarkup } from '../../src/cli/plain.ts'

/** Controls, and characters that show others in another order than they have. */
const INTERPRETED = [
  [0x00, 0x08],
  [0x0b, 0x0c],
  [0x0e, 0x1f],
  [0x7f, 0x9f],
  [0x061c, 0x061c],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2066, 0x2069],
].flatMap(([from = 0, to = 0]) => Array.from({ length: to - from + 1 }, (_, at) => from + at))

describe('untrusted text', () => {
  it('keeps its lines and tabs, and has escapes in place of what a terminal interprets', () => {
    expect(plain('a\r\n\tb \u001B[2J\u0007c\nd\re \u202Egpj.exe')).toBe(
      'a\n\tb \\u001b[2J\\u0007c\nd\ne \\u202egpj.exe',
    )
    expect(plain('שלום עולם, 你好 👩‍🚀')).toBe('שלום עולם, 你好 👩‍🚀')
  })

  it.each([
    ['a text', plain],
    ['a text on one line', (text: string) => oneLine(text, 80)],
    ['a value as JSON', jsonText],
  ])('has an escape for each of these characters, as %s', (_, shown) => {
    for (const code of INTERPRETED) {
      const text = `a${String.fromCharCode(code)}b`
      const escaped = shown(text).replaceAll('"', '')
      expect(escaped).toMatch(/^[ -~]+$/)
      // White space may be a space.
      expect([text, 'a b']).toContain(JSON.parse(`"${escaped}"`))
    }
  })
})

describe('untrusted text on one line', () => {
  it('has no line breaks', () => {
    expect(oneLine('a\r\nb \u001B[2J\td\u2028e', 80)).toBe('a b \\u001b[2J d e')
  })

  it('is truncated where it is too long, but not within a character', () => {
    expect(oneLine('abcdef', 6)).toBe('abcdef')
    expect(oneLine('abcdefg', 6)).toBe('abcde…')
    expect(oneLine('abcd\u{1F525}fg', 6).isWellFormed()).toBe(true)
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
