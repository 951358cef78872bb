import * as fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { type Block, blocksOf } from '../../../src/service/corpus/blocks.ts'

/** Each block as its kind and text, followed by its children. */
function outline(text: string, blocks: readonly Block[] = blocksOf(text)): unknown[] {
  return blocks.map(({ kind, start, end, children }) =>
    children.length === 0 ? [kind, text.slice(start, end)] : [kind, ...outline(text, children)],
  )
}

describe('blocksOf', () => {
  it.each([
    ['# One #\ntext\n### Three', [1, 0, 3]],
    ['Over\ntwo lines\n---\ntext', [2, 0]],
    ['#none\n\n    # none', [0, 0]],
    ['```\n# none\n```\n\n<!--\n\n# none\n\n-->', [0, 0]],
  ])('finds the headings of %j', (text, levels) => {
    expect(blocksOf(text).map(({ level }) => level)).toEqual(levels)
  })

  it('has the text of a heading without its markers', () => {
    expect(blocksOf('## Two ##\n\nOne\n===').map(({ content }) => content)).toEqual(['Two', 'One'])
  })

  it.each([
    [
      '~~~\n```\n\n~~~\ntext',
      [
        ['code', '~~~\n```\n\n~~~'],
        ['paragraph', 'text'],
      ],
    ],
    [
      'text\n\n    code\n\n    more\n\ntext',
      [
        ['paragraph', 'text'],
        ['code', 'code\n\n    more'],
        ['paragraph', 'text'],
      ],
    ],
    [
      '<!-- a\n\n- b\n-->\ntext',
      [
        ['html', '<!-- a\n\n- b\n-->'],
        ['paragraph', 'text'],
      ],
    ],
    [
      '<div>\n*a*\n</div>\n\ntext',
      [
        ['html', '<div>\n*a*\n</div>'],
        ['paragraph', 'text'],
      ],
    ],
    [
      'a | b\n--|--\n1 | 2\n\ntext',
      [
        ['table', 'a | b\n--|--\n1 | 2'],
        ['paragraph', 'text'],
      ],
    ],
    ['text\n[a]: b', [['paragraph', 'text\n[a]: b']]],
    [
      '[a]:\n  b\n  "c"\ntext\n\n* * *',
      [
        ['other', '[a]:\n  b\n  "c"'],
        ['paragraph', 'text'],
        ['other', '* * *'],
      ],
    ],
    [
      '> a\n> # b\n> c\nlazy',
      [['quote', ['paragraph', '> a'], ['heading', '> # b'], ['paragraph', '> c\nlazy']]],
    ],
    [
      '- a\n\n  ```\n  b\n  ```\n- c\n  1. d\n\n[x]: y\n',
      [
        [
          'list',
          ['item', ['paragraph', '- a'], ['code', '```\n  b\n  ```']],
          ['item', ['paragraph', '- c'], ['list', ['item', ['paragraph', '1. d']]]],
        ],
        ['other', '[x]: y'],
      ],
    ],
    [
      'a\r\n\r\n# b\r\rc',
      [
        ['paragraph', 'a'],
        ['heading', '# b'],
        ['paragraph', 'c'],
      ],
    ],
    [' \n\t\n', []],
  ])('parses %j', (text, blocks) => {
    expect(outline(text)).toEqual(blocks)
  })

  it('has the content of a list or a quote without their markers', () => {
    const [list] = blocksOf('- > a\n  > b')
    expect(list?.children[0]?.children[0]?.children[0]).toMatchObject({ kind: 'paragraph', content: 'a\nb' })
  })

  it('covers any text, except for white space, in blocks and in their children', () => {
    const line = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 30 }),
      fc.constantFrom('', '', '# a', '---', '===', '```', '- a', '  - b', '1. c', '> q', '>> r', '    d'),
      fc.constantFrom(
        '| a | b |',
        '|-|-|',
        '[a]: b',
        '"t"',
        '<!--',
        '-->',
        '<div>',
        '\r',
        '\u00A0',
        '-',
        '>',
        '\t- e',
      ),
    )
    function checkCover(text: string, blocks: readonly Block[], from: number, to: number): void {
      let end = from
      for (const block of blocks) {
        expect(text.slice(end, block.start).trim()).toBe('')
        expect(block.end).toBeGreaterThan(block.start)
        if (block.children.length > 0) checkCover(text, block.children, block.start, block.end)
        end = block.end
      }
      expect(text.slice(end, to).trim()).toBe('')
    }
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), (lines) => {
        const text = lines.join('\n')
        checkCover(text, blocksOf(text), 0, text.length)
      }),
    )
  })
})

/** Texts whose repetition is known to be slow for Markdown parsers. */
const UNITS = [
  ...'[ ![ ] [a]( []( [](< [a][b] ( * _ *a_ a**b a_b_ ~~ ` \\`` < <> a<!-- <![CDATA[ & \\ | -| # ~ = > a'.split(
    ' ',
  ),
  ...'] [;~~a ;a <?;<a href=";# ; ;\t;> ;- ;1. ;- > ;* * ;[a]: '.split(';'),
  ...'[;- a;-;> a;> - a;| a;|-|;a\n-|-;[a]: ";<!--;<div>\n;<?;```;~~~ `;a\n=;    a\n;- a\n\n;'
    .split(';')
    .map((line) => `${line}\n`),
]

/** Texts of about the given number of characters. */
const HOSTILE: Readonly<Record<string, (length: number) => string>> = {
  ...Object.fromEntries(UNITS.map((unit) => [unit, (length: number) => unit.repeat(length / unit.length)])),
  'fences that grow': (length) => growing(length, (size) => `${'`'.repeat(size)}\n`),
  'quotes that grow': (length) => growing(length, (size) => `${'>'.repeat(size)}a\n`),
  'lists that grow': (length) => growing(length, (size) => `${'  '.repeat(size)}- a\n`),
  'a lazy continuation of a quote': (length) => `${'>'.repeat(length / 2)}a\n${'a\n'.repeat(length / 4)}`,
  'a list that ends late': (length) => `${'- '.repeat(length / 4)}a${'\n'.repeat(length / 2)}b`,
  'a title that never ends': (length) => `[a]: b "${'x\n'.repeat(length / 2)}`,
  'many definitions': (length) => growing(length, (size) => `[a${size}]: b\n`),
  'a wide table': (length) => ['a', '-', 'b'].map((cell) => `|${cell}`.repeat(length / 6)).join('\n'),
}

function growing(length: number, part: (size: number) => string): string {
  let text = ''
  for (let size = 1; text.length < length; size++) text += part(size)
  return text
}

/** The number of character reads while a text is parsed: the same on any machine. */
function workOf(text: string): number {
  const original = String.prototype.charCodeAt
  let calls = 0
  // oxlint-disable-next-line no-extend-native -- The parser reads characters only by this method.
  String.prototype.charCodeAt = function charCodeAt(index) {
    calls += 1
    return original.call(this, index)
  }
  try {
    blocksOf(text)
  } finally {
    // oxlint-disable-next-line no-extend-native
    String.prototype.charCodeAt = original
  }
  return calls
}

describe('a hostile text', () => {
  it.each(Object.entries(HOSTILE))('of %j is parsed in linear time', (_, text) => {
    const short = workOf(text(10_000))
    expect(short).toBeGreaterThan(0)
    // Four times the text: quadratic work would be sixteen times as much.
    expect(workOf(text(40_000))).toBeLessThan(6 * short + 10_000)
  })

  it('of short rows in a wide table creates no cell for each column and row', () => {
    const text = ['|a'.repeat(400), '|-'.repeat(400), '|b|\n'.repeat(100)].join('\n')
    const pushes = vi.spyOn(Array.prototype, 'push')
    try {
      expect(blocksOf(text)).toMatchObject([{ kind: 'table', end: text.trim().length }])
      expect(pushes.mock.calls.length).toBeLessThan(5 * text.length)
    } finally {
      pushes.mockRestore()
    }
  })
})
