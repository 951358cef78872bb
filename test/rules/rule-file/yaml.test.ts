import * as fc from 'fast-check'
import { parseRules } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { problemsIn, ruleOf } from './problems.ts'

const VALID = ruleOf('alert: A', 'on: [error]')

describe('a rule file', () => {
  it('is read with a byte order mark and with Windows line ends', () => {
    expect(parseRules(`\uFEFF${VALID.replaceAll('\n', '\r\n')}`).names).toEqual(['A'])
  })

  it('may be JSON', () => {
    const file = { version: 1, rules: [{ alert: 'A', on: ['error'] }] }

    expect(parseRules(JSON.stringify(file)).names).toEqual(['A'])
  })

  it('may repeat values with aliases', () => {
    const text = ruleOf('alert: A', 'on: &types [error]', 'labels: &labels { team: a }')

    expect(parseRules(`${text}\n  - { alert: B, on: *types, labels: *labels }`).names).toEqual(['A', 'B'])
  })

  it.each([
    ['', '1:1 The file is empty'],
    ['# nothing', '1:1 The file is empty'],
    ['null', '1:1 The file is empty'],
    ['1', '1:1 This must be properties'],
    ['[]', '1:1 This must be properties'],
    ['version: 1', '1:1 The file has no rules'],
    [
      'version: 1\nrules:',
      '2:7 rules must be a list of rules, at least one and at most 5000, and it is empty.',
    ],
    ['version: 1\nrules: []', '2:8 rules must be a list of rules'],
    [`version: 2\nrules: [{ alert: A, on: [error] }]`, '1:10 version must be 1'],
    ['rules: [{ alert: A, on: [error] }]', '1:1 version is missing: write 1'],
    [`${VALID}\n\tfor: 1m`, '5:1 This is not valid YAML: Tabs are not allowed as indentation.'],
    ['version: 1\nrules: [', '2:9 This is not valid YAML'],
    [`${VALID}\n---\n${VALID}`, '5:1 This is not valid YAML'],
    [`${VALID}\n    on: [error]`, '5:5 on stands here twice: remove one of the two.'],
    [`${VALID}\n    "on": [error]`, '5:5 on stands here twice'],
    [`${VALID}\n    labels: { a: x, a: y }`, '5:21 a stands here twice'],
    [`${VALID}\n    5: x`, '5:5 The name of a property must be text'],
    [`${VALID}\n    ? [x]\n    : y`, '5:7 The name of a property must be text'],
    [`${VALID}\n    __proto__: {}`, '5:5 __proto__ cannot be a name'],
    [`${VALID}\n    labels: { __proto__: x }`, '5:15 __proto__ cannot be a name'],
    [`${VALID}\n    <<: { for: 1m }`, '5:5 This has no property "<<"'],
    [`${VALID}\n    for: !duration 1m`, '5:10 This is not valid YAML: Unresolved tag: !duration.'],
    [`${VALID}\n    for: *missing`, '5:10 There is no anchor &missing before this alias: write the value.'],
    [`%YAML 1.1\n---\n${VALID}\n    enabled: yes`, '7:14 enabled must be true or false, not yes.'],
    ['\u0000\u0001', '1:1 The file has a control character'],
    [`${VALID}\n    # \u0007`, '5:7 The file has a control character'],
  ])('has a position and a sentence for %j', (text, problem) => {
    expect(problemsIn(text)).toContainEqual(expect.stringContaining(problem))
  })

  it.each([
    ['brackets', '['.repeat(300_000)],
    ['braces', `a: ${'{'.repeat(300_000)}`],
    ['dashes', '- '.repeat(300_000)],
    ['explicit keys', '? '.repeat(300_000)],
    ['indentation', Array.from({ length: 1_000 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('')],
    ['an alias of what contains it', `${VALID}\n    labels: &a { x: *a }`],
  ])('is refused for nesting by %s', (_, text) => {
    expect(problemsIn(text).join('\n')).toMatch(/nested too deeply|too much/)
  })

  it('is refused where aliases of aliases would make it large', () => {
    const names = [...'abcdefghij']
    const bomb = names.map((name, index) => {
      const before = names[index - 1]
      return `${name}: &${name} [${Array.from({ length: 9 }, () => (before === undefined ? 'x' : `*${before}`)).join()}]`
    })

    expect(problemsIn(bomb.join('\n')).join('\n')).toContain('Aliases repeat more than 20000 values')
  })

  it('has at most a MiB, 5,000 rules and 200 properties in an object', () => {
    const rules = Array.from({ length: 5_001 }, (_, index) => `  - { alert: A${index}, on: [error] }`)
    const properties = Array.from({ length: 201 }, (_, index) => `a${index}: 1`)

    expect(problemsIn(`#${'é'.repeat(524_288)}`)).toEqual([
      '1:1 The file has more than 1048576 bytes: split it into several files.',
    ])
    expect(problemsIn(`version: 1\nrules:\n${rules.join('\n')}`)[1]).toMatch(
      /^3:3 rules must be .* at most 5000/,
    )
    expect(problemsIn(properties.join('\n'))[0]).toBe('1:1 This has 201 properties: use at most 200.')
  })

  it('throws nothing but a RuleError, whatever the text is', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        'version: 1\nrules:\n  - alert: A\n    when: ',
        'when: ',
        'labels: ',
        '{ a: ',
        '&a ',
        '*a ',
        '!!binary ',
        '!!set ',
        '!!map ',
        '|\n  ',
        '>-\n  ',
        '"',
        "'",
        '\t',
        '\r\n',
        '---\n',
        '...\n',
        '%YAML 1.1\n',
        '? ',
        ': ',
        '- ',
        '# ',
        '[',
        ']',
        '}',
        ',',
        '\n    ',
        'count: ',
        'over: 1h\n',
        '${',
        'null',
        '~',
        '.nan',
        '-.inf',
        '1e999',
      ),
    )
    const texts = fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join(''))

    fc.assert(
      fc.property(texts, (text) => {
        // It throws any other error.
        expect(problemsIn(text).filter((problem) => !/^[1-9]\d*:[1-9]\d* \S/.test(problem))).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  }, 120_000)
})
