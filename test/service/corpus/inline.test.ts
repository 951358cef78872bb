import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { inlinesOf, inlineText } from '../../../src/service/corpus/inline.ts'

describe('inlineText', () => {
  it.each([
    ['**Bold**, _not_ snake_case and `a*b`', 'Bold, not snake_case and a*b'],
    ['[link](<a b> "t") to <https://a.example>', 'link to https://a.example'],
    ['a \\*star\\* &lt;b&gt;<br>c', 'a *star* <b>c'],
    ['[![badge][1]][2]', 'badge'],
    ['one\ntwo', 'one two'],
  ])('reads %j as %j', (content, text) => {
    expect(inlineText(content)).toBe(text)
  })
})

/** The elements of a text, without the text between them. */
function marksIn(text: string): string[][] {
  return [...inlinesOf(text)]
    .filter(({ kind }) => kind !== 'text')
    .map(({ kind, start, end, label }) => {
      const mark = [kind, text.slice(start, end)]
      return label === undefined ? mark : mark.concat(text.slice(label.start, label.end))
    })
}

describe('inlinesOf', () => {
  it.each([
    [
      'a `b` c ``d`e``',
      [
        ['code', '`b`'],
        ['code', '``d`e``'],
      ],
    ],
    ['![a [b]](c "d") !', [['image', '![a [b]](c "d")']]],
    [
      'See [a `]` b](<c d> (e)), [f][g] and [h]',
      [
        ['link', '[a `]` b](<c d> (e))', 'a `]` b'],
        ['link', '[f][g]', 'f'],
      ],
    ],
    ['[![a][b]](c)', [['link', '[![a][b]](c)', '![a][b]']]],
    [
      '1 < 2 <b title=">">c</b> <!-- d -->',
      [
        ['html', '<b title=">">'],
        ['html', '</b>'],
        ['html', '<!-- d -->'],
      ],
    ],
    ['\\[a](b) \\`c` [d', []],
  ])('finds the elements of %j', (text, marks) => {
    expect(marksIn(text)).toEqual(marks)
  })

  it('covers any text', () => {
    const part = fc.oneof(
      fc.string({ maxLength: 5 }),
      fc.constantFrom('[', '](', ')', '![', '`', '``', '<a>', '<!--', '\\', '&', '\n'),
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
        const text = parts.join('')
        expect([...inlinesOf(text)].map(({ start, end }) => text.slice(start, end)).join('')).toBe(text)
      }),
    )
  })
})
