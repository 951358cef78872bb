import { describe, expect, it } from 'vitest'
import { unitsOf } from '../../../../src/service/processor/passages/units.ts'

const textsOf = (text: string) => unitsOf(text).map((unit) => unit.text)

describe('unitsOf', () => {
  it('splits a paragraph into sentences, also if one spans two lines', () => {
    expect(textsOf('One sentence\nover two lines. Another one!')).toEqual([
      'One sentence\nover two lines.',
      'Another one!',
    ])
  })

  it('does not end a sentence within an abbreviation, a URL or code', () => {
    const text = 'Licensed under [MIT](./LICENSE). Uses e.g. `fs.watch! Now` or others.'
    expect(textsOf(text)).toEqual([
      'Licensed under [MIT](./LICENSE).',
      'Uses e.g. `fs.watch! Now` or others.',
    ])
  })

  it('has the heading of each unit', () => {
    expect(unitsOf('intro\n\n## First\n\na one\n\nSecond\n------\n\na two\r\n')).toEqual([
      { text: 'intro', kind: 'sentence', heading: '' },
      { text: 'a one', kind: 'sentence', heading: 'First' },
      { text: 'a two', kind: 'sentence', heading: 'Second' },
    ])
  })

  it('distinguishes items, rows and code, without their markers', () => {
    expect(
      unitsOf(
        '- **item one**\n* [ ] item two\n1. `three`\n\n| a cell |\n\n```sh\n$ npm install x\n\n# note\n```',
      ),
    ).toEqual([
      { text: 'item one', kind: 'item', heading: '' },
      { text: 'item two', kind: 'item', heading: '' },
      { text: 'three', kind: 'item', heading: '' },
      { text: '| a cell |', kind: 'row', heading: '' },
      { text: 'npm install x', kind: 'code', heading: '' },
      { text: '# note', kind: 'code', heading: '' },
    ])
  })

  it('recognises a table without outer pipes, and rows whose header is in another passage', () => {
    expect(unitsOf('Name | Use\n---|---\none | first\n\n| two | second |\n| three | third |')).toEqual([
      { text: 'Name | Use', kind: 'row', heading: '' },
      { text: 'one | first', kind: 'row', heading: '' },
      { text: '| two | second |', kind: 'row', heading: '' },
      { text: '| three | third |', kind: 'row', heading: '' },
    ])
  })

  it('reads indented text as code, and as text within a list', () => {
    expect(unitsOf('Run:\n\n    npm install x\n\n1. An item\n\n    that goes on')).toEqual([
      { text: 'Run:', kind: 'sentence', heading: '' },
      { text: 'npm install x', kind: 'code', heading: '' },
      { text: 'An item', kind: 'item', heading: '' },
      { text: 'that goes on', kind: 'sentence', heading: '' },
    ])
  })

  it('reads the paragraphs and headings of a quote', () => {
    expect(unitsOf('> One thing\n>\n> ## Name\n>\n> Another thing')).toEqual([
      { text: 'One thing', kind: 'sentence', heading: '' },
      { text: 'Another thing', kind: 'sentence', heading: 'Name' },
    ])
  })

  it('has headings without their markers', () => {
    expect(unitsOf('## The `name` of [it](x) ##\n\ntext')).toMatchObject([{ heading: 'The name of it' }])
  })

  it.each([
    '[![build status](a.svg)](https://x)',
    '[![MIT licensed][badge]][url]',
    '[![version](<https://x/v.svg?label=npm%20(stable)>)](https://x)',
    '<p align="center"><img src="logo.svg"></p>',
    '---',
    '[badge]: https://img.shields.io/badge/license-MIT-blue.svg',
    '[badge]:\n  https://img.shields.io/badge/license-MIT-blue.svg\n  "a title"',
    '<!--\n\n- version: 1\n\n# Heading\n-->',
  ])('has no units in %s', (text) => {
    expect(unitsOf(text)).toEqual([])
  })

  it('ignores badges and tags', () => {
    expect(textsOf('[![a](b)](c) The text. ![d](e)')).toEqual(['The text.'])
    expect(textsOf('<h1 align="center">Name</h1>\n<p>What it <b>does</b></p>')).toEqual([
      'Name',
      'What it <b>does',
    ])
    expect(textsOf('[Apache 2.0 License](LICENSE.txt)')).toEqual(['Apache 2.0 License'])
  })
})
