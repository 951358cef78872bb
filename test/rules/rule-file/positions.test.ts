import * as fc from 'fast-check'
import { isScalar, parseDocument } from 'yaml'
import { parseRules } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { positionInScalar } from '../../../src/rules/rule-file/scalar-offset.ts'
import { problemsOf } from './problems.ts'

/** Where the problem is that `wrong` has no field. A file has it once. */
function placeIn(...lines: readonly string[]): string[] {
  const text = ['version: 1', 'rules:', '  - alert: A', ...lines].join('\n')
  const problems = problemsOf(() => parseRules(text))
  return problems.map(({ line, column }) => `${line}:${column}`)
}

describe('a problem within an expression has the line and column of its character', () => {
  it.each([
    ['plain', ['    when: wrong == 1'], '4:11'],
    ['plain, later', ['    when: id == "x" && wrong == 1'], '4:24'],
    ['plain, on several lines', ['    when: id == "x"', '', '      && wrong == 1'], '6:10'],
    ['in double quotes', ['    when: "wrong == 1"'], '4:12'],
    ['after escapes', [String.raw`    when: "id == \"x\u0061\U0001F600\" && wrong == 1"`], '4:43'],
    ['after an escaped line break', ["    when: \"id == 'x' \\", '      && wrong == 1"'], '5:10'],
    ['after an escaped line end', [String.raw`    when: "id == 'x'\n&& wrong == 1"`], '4:26'],
    ['in double quotes, folded', ["    when: \"id == 'x'   ", '', '', '      && wrong == 1"'], '7:10'],
    ['in single quotes', ["    when: 'id == ''x'' && wrong == 1'"], '4:27'],
    ['in single quotes, folded', ["    when: 'id == ''x''", "      && wrong == 1'"], '5:10'],
    ['literal', ['    when: |', '      id == "x"', '        && wrong == 1'], '6:12'],
    [
      'literal, with a comment and an indentation',
      ['    when: |2-  # why', '      id == "x" &&', '', '      wrong == 1'],
      '7:7',
    ],
    ['folded', ['    when: >', '      id == "x"', '      && wrong == 1'], '6:10'],
    [
      'folded, with blank and indented lines',
      ['    when: >+', '', '      id == "x"', '', '        &&', '      wrong == 1', ''],
      '9:7',
    ],
    ['with Windows line ends', ['    when: |\r', '      id == "x"\r', '      && wrong == 1\r'], '6:10'],
    ['in a flow map', ['    count: { over: 1h, gte: 3, when: wrong == 1 }'], '4:38'],
    ['in a list', ['    sequence: { within: 1h, steps: ["id == \'x\'", "wrong == 1"] }'], '4:51'],
    ['in a key', ['    on: [error]', '    key:', '      a: wrong'], '6:10'],
    ['in a template', ['    on: [error]', '    annotations:', '      a: "see ${wrong}"'], '6:17'],
    ['after an anchor', ['    when: &a wrong == 1'], '4:14'],
  ])('%s', (_, lines, place) => {
    expect(placeIn(...lines)).toEqual([place])
  })

  it('behind an alias, at its anchor', () => {
    const text = 'version: 1\nrules:\n  - alert: A\n    when: &a wrong == 1\n  - { alert: B, when: *a }'

    expect(problemsOf(() => parseRules(text)).map(({ rule, line, column }) => [rule, line, column])).toEqual([
      ['A', 4, 14],
      ['B', 4, 14],
    ])
  })

  it('for each character of any text in quotes or in a literal block', () => {
    const word = fc.stringMatching(/^[a-z'"\\&|=.é😀]{1,6}$/u)
    const words = fc.array(word, { minLength: 1, maxLength: 8 })
    const styles: readonly ((words: readonly string[]) => string)[] = [
      (all) => `'${all.join(' ').replaceAll("'", "''")}'`,
      (all) => `"${all.join(' ').replaceAll(/[\\"]/g, String.raw`\$&`)}"`,
      (all) => `'${all.join('\n   ').replaceAll("'", "''")}'`,
      (all) => `|\n  ${all.join('\n  ')}`,
      (all) => `>\n  ${all.join('\n  ')}`,
    ]
    fc.assert(
      fc.property(words, fc.constantFrom(...styles), (all, style) => {
        const text = `a: ${style(all)}\n`
        const scalar = parseDocument(text).get('a', true)
        if (!isScalar(scalar) || typeof scalar.value !== 'string') throw new Error(`no text: ${text}`)
        for (const [offset, character] of [...scalar.value].entries()) {
          const unit = [...scalar.value].slice(0, offset).join('').length
          if (/\s/.test(character)) continue
          const found = text.slice(positionInScalar(text, scalar, unit))
          expect(found.startsWith('\\') && character !== '\\' ? found.slice(1) : found).toSatisfy(
            (rest: string) => rest.startsWith(character),
          )
        }
      }),
    )
  })
})

describe('a problem of a property has the line and column', () => {
  it('of its value, of its name, or of what it is missing in', () => {
    expect(placeIn('    count:', '      over: 1 hour', '      gte: 3', '      gt: 4')).toEqual([
      '5:13',
      '7:7',
    ])
    expect(placeIn('    count:', '      over: 1h')).toEqual(['5:7'])
    expect(placeIn('    on: [error]', '    labels: { 9x: a }')).toEqual(['5:15'])
    expect(placeIn('    on:', '      - error', '      - eror')).toEqual(['6:9'])
  })
})
