import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const REFERRING = ['README.md', 'CHANGELOG.md', '{docs,src,operators,examples,bench}/**/*.{md,ts}']

/** A `§` in a text, its position, and its number. */
interface Reference {
  readonly at: string
  /** Empty where no number follows. */
  readonly section: string
}

/** Each `§` of a text. */
function referencesIn(file: string, text: string): Reference[] {
  return text.split('\n').flatMap((line, index) =>
    [...line.matchAll(/§\s*((?:\d+(?:\.\d+)*)?)/g)].map(([, section = '']) => ({
      at: `${file}:${index + 1}`,
      section,
    })),
  )
}

/** The numbers of the sections in a text, from their anchors and headings. */
function sectionsIn(text: string): string[] {
  return [...text.matchAll(/^<a id="s([\d.]+)"><\/a>\n\n#{2,3} ([\d.]*\d)\.? /gm)].map(
    ([, anchor, heading]) => (anchor === heading ? `${anchor}` : `anchor ${anchor} at heading ${heading}`),
  )
}

const read = (file: string) => readFileSync(join(root, file), 'utf8')
const sections = sectionsIn(read('docs/reference/wire.md'))
const references = globSync(REFERRING, { cwd: root })
  .toSorted()
  .flatMap((file) => referencesIn(file, read(file)))
  // The page itself explains the sign.
  .filter(({ at, section }) => section !== '' || !at.startsWith('docs/reference/wire.md:'))

describe('docs/reference/wire.md', () => {
  it('has each section to which a doc comment or a page refers', () => {
    const missing = references.filter(({ section }) => !sections.includes(section))

    expect(missing).toEqual([])
    // Without a reference, the test could not fail.
    expect(references.length).toBeGreaterThan(100)
  })

  it('has the sections of the interface, in order', () => {
    const parts = (count: number, of: number) =>
      Array.from({ length: count }, (_, index) => `${of}.${index + 1}`)

    expect(sections).toEqual(
      ['1', '2', parts(9, 2), '3', '4', parts(8, 4), '5', '6', parts(3, 6), '7', '8', '9'].flat(),
    )
  })

  it('links only to its own anchors', () => {
    const text = read('docs/reference/wire.md')
    const anchors = [...text.matchAll(/<a id="([^"]+)"><\/a>/g)].map(([, id]) => id)
    const targets = [...text.matchAll(/\]\(#([^)]+)\)/g)].map(([, target]) => target)

    expect(targets.filter((target) => !anchors.includes(target))).toEqual([])
    expect(new Set(anchors).size).toBe(anchors.length)
  })
})

describe('a reference', () => {
  it('is found with its number, its file and its line', () => {
    expect(referencesIn('a.ts', 'x\n/** See §4.5, § 7 and §. */')).toEqual([
      { at: 'a.ts:2', section: '4.5' },
      { at: 'a.ts:2', section: '7' },
      { at: 'a.ts:2', section: '' },
    ])
  })
})
