import { defineRules, parseRules, RuleError } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { problemsIn, problemsOf, ruleOf } from './problems.ts'

/** The problems of a rule with these lines. */
const problems = (...lines: readonly string[]) => problemsIn(ruleOf('alert: A', ...lines))

describe('a rule is refused, with one problem that says what to write instead,', () => {
  it.each([
    [['for: 0s'], '3:5 The rule has no condition: write when, on, or a window such as count.'],
    [['when: id'.replace('id', '1')], '4:11 '],
    [['on: [error]', 'lable: { a: b }'], '5:5 This has no property lable: did you mean labels?'],
    [
      ['on: [error]', 'keepFiringFor: 1h'],
      '5:5 This has no property keepFiringFor: did you mean keep_firing_for?',
    ],
    [['on: [error]', 'severity: high'], '5:5 This has no property severity: write labels: { severity: … }.'],
    [
      ['on: [monitor.complete]'],
      '4:10 on[0] must be a type of events, such as monitor.event_stream, not monitor.complete: did you mean monitor.completion?',
    ],
    [['on: [alert.firing]'], '4:10 on[0] must be a type of events'],
    [['on: [monitor.progress]'], '4:10 on[0] must be a type of events'],
    [['on: [log.own]'], '4:10 on[0] must be a type of events'],
    [['on: [taskrun.state]'], 'did you mean task_run.state?'],
    [
      ['on: error'],
      '4:9 on must be a list of types of events, such as [monitor.event_stream], at least one and at most 50: write [error].',
    ],
    [['on: [error]', 'key: source'], '5:10 key must be names and CEL expressions'],
    [
      ['count: { over: 1h, gte: "3" }'],
      '4:29 count.gte must be a whole number from 1 to 5000, not the text "3".',
    ],
    [
      ['on: [error]', 'annotations: { a: "{{ $value }} events" }'],
      '5:24 `{{ $value }}` is a template of Prometheus',
    ],
    [['on: [error]', 'labels: { a: "${id}" }'], '5:21 There is no name `id`: only `key` can be used here'],
    [['on: [error]', 'key: { a: source[0] }'], '5:21 This is not valid YAML'],
    [['on: [error]', 'for: 10'], '5:10 for has no unit: write 10s, 10m or 10ms.'],
    [['on: []'], '4:9 on must be a list of types of events'],
    [
      ['on: [error]', 'labels: { severity: 1 }'],
      '5:25 labels.severity must be text: put it into quotes, "1".',
    ],
    [['on: [error]', 'labels: { severity: }'], 'labels.severity must be text, and it is empty.'],
    [['on: [error]', 'labels: { __name: x }'], '5:15 __name cannot be a name'],
    [
      ['on: [error]', 'labels: { alertname: x }'],
      '5:15 The label alertname is the name of the rule: use another name.',
    ],
    [['on: [error]', 'key: { alertname: id }'], '5:12 The label alertname is the name of the rule'],
    [
      ['on: [error]', 'key: { a: id }', 'labels: { a: x }'],
      '6:15 The label a is a key already: remove it, or use another name.',
    ],
    [['on: [error]', 'labels: { event: x }', 'per: event'], '5:15 The label event is a key already'],
    [
      ['on: [error]', 'key: { event: id }', 'per: event'],
      '5:12 per: event adds a key of the name event: use another name.',
    ],
    [
      ['on: [error]', 'key: { source: id }', 'per: event'],
      '5:12 per: event adds a key of the name source: use another name.',
    ],
    [['per: event', 'count: { over: 1h, gte: 2 }'], '4:5 per: event has no use with count'],
    [['on: [error]', 'per: key'], '5:10 per must be event, not key.'],
    [['on: [error]', 'backfill: no'], '5:15 backfill must be ignore or place, not no'],
    [['on: [error]', 'for: 1y'], '5:10 for must be a time span such as 30s, 10m, 1h30m or 2d, not 1y.'],
    [['on: [error]', 'for: 30m1h'], '5:10 for must be a time span'],
    [['on: [error]', 'for: 1.5'], '5:10 for must be a time span'],
    [['on: [error]', 'lateness: 367d'], '5:15 lateness must be at most 366d, not 367d.'],
    [['on: [error]', 'resolve: { after: 0s }'], '5:23 resolve.after must be from 1ms to 366d, not 0s.'],
    [['on: [error]', 'for: 1h'], '5:10 for must be shorter than resolve.after (its default, 60m)'],
    [
      ['on: [error]', 'for: 2h', 'resolve: { after: 2h }'],
      '5:10 for must be shorter than resolve.after (2h)',
    ],
    [
      ['on: [error]', 'for: 5m', 'per: event'],
      '5:10 for must be shorter than resolve.after (its default, 5m)',
    ],
    [['count: { over: 1h, gte: 0 }'], '4:29 count.gte must be a whole number from 1 to 5000, not 0.'],
    [['count: { over: 1h, gte: 5001 }'], '4:29 count.gte must be a whole number from 1 to 5000, not 5001.'],
    [['count: { over: 1h, gte: 2.5 }'], '4:29 count.gte must be a whole number'],
    [['count: { gte: 3 }'], '4:12 count.over is missing: write a time span such as 30s'],
    [
      ['count: { over: 1h, gte: 3 }', 'resolve: { after: 1h }'],
      '5:16 A rule with count ends when it does not hold any more: remove resolve.after.',
    ],
    [
      ['rate: { over: 1d, per: 1m, gte: 10 }'],
      '4:37 rate.gte needs 14400 events within 1d, and a rule remembers 5000: write a shorter rate.over.',
    ],
    [['spike: { over: 1h, factor: 0.5 }'], '4:32 spike.factor must be a number of at least 1, not 0.5.'],
    [
      ['spike: { over: 1h, factor: 2000 }'],
      '4:32 spike.factor must be at most 1000 where spike.min is not set',
    ],
    [['sum: { over: 1h, value: size(id) }'], '4:10 sum has no bound: write gte, lte or both.'],
    [
      ['avg: { over: 1h, value: size(id), gte: 2, lte: 1 }'],
      '4:44 avg.gte must not be more than avg.lte, not 2: no number is both.',
    ],
    [['max: { over: 1h, value: id, gte: 1 }'], '4:29 A number is needed, and this is a text.'],
    [
      ['percentile: { over: 1h, value: size(id), p: 101, gte: 1 }'],
      '4:49 percentile.p must be a number from 0 to 100, not 101.',
    ],
    [
      ['percentile: { over: 1h, value: size(id), gte: 1 }'],
      '4:17 percentile.p is missing: write a number from 0 to 100.',
    ],
    [['min: { over: 0s, value: size(id), lte: 1 }'], '4:18 min.over must be from 1ms to 366d, not 0s.'],
    [
      ['sum: { over: 1h, value: size(id), gte: 1 }', 'resolve: { after: 1h }'],
      '5:16 A rule with sum ends when it does not hold any more: remove resolve.after.',
    ],
    [
      ['changed: { value: id }', 'count: { over: 1h, gte: 3 }'],
      '5:5 count cannot stand beside changed: write a rule for each.',
    ],
    [['changed: { value: id }', 'new: { value: id, within: 1d }'], '4:5 changed cannot stand beside new'],
    [['sequence: { steps: ["true"], within: 1h }'], '4:24 A sequence of one step needs not_then'],
    [['absence: { within: 1h }', 'key: { a: id }'], '5:5 A rule with absence has no key'],
    [['absence: { within: 1h }', 'on: [error]'], '5:5 A rule with absence has its types in absence'],
    [
      ['absence: { within: 1h }', 'resolve: { after: 1h }'],
      '5:5 A rule with absence ends with the next report: remove resolve.',
    ],
    [['absence: { within: 1h }', 'labels: { source: x }'], '5:15 The label source is a key already'],
    [['absence: { within: 1h, of: [".."] }'], '4:33 .. is neither an id nor a source'],
    [
      ['absence: { within: 1h, of: [/v1/tasks/groups/tgrp_1] }'],
      '4:33 "/v1/tasks/groups/tgrp_1" is no monitor',
    ],
    [['on: [monitor.error]', 'when: data.output == 1'], '5:'],
    [
      ['when: changed(id) && changed(time) && changed(source) ', 'resolve: { when: changed(type) }'],
      '5:22 A rule has at most 3 different changed(…): remove one.',
    ],
  ])('as %j', (lines, problem) => {
    expect(problems(...lines)).toEqual([expect.stringContaining(problem)])
  })
})

describe('the problems of a file', () => {
  it('name a value that is no number beside another problem of its window', () => {
    expect(problems('max: { over: soon, value: id, gte: 1 }')).toEqual([
      expect.stringContaining('4:18 max.over must be a time span'),
      expect.stringContaining('4:31 A number is needed, and this is a text.'),
    ])
  })

  it('are all reported, with the names of their rules', () => {
    const text = [
      'version: 1',
      'rules:',
      '  - alert: First',
      '    when: wrong == 1',
      '    labels: { a: "${wrong}", 9: b }',
      '    count: { over: soon }',
      '  - alert: Second',
      '  - when: wrong',
      '  - 5',
      'groups:',
      '  - rules: [{ alert: Third, when: 1 }]',
    ].join('\n')
    const found = problemsOf(() => parseRules(text, { file: 'r.yaml' }))

    expect(found.map(({ file, rule, line, path }) => `${file} ${rule} ${line} ${path}`).toSorted()).toEqual([
      'r.yaml First 4 rules[0].when',
      'r.yaml First 5 rules[0].labels.a',
      'r.yaml First 6 rules[0].count',
      'r.yaml First 6 rules[0].count.over',
      'r.yaml Second 7 rules[1]',
      'r.yaml Third 11 groups[0].rules[0].when',
      'r.yaml null 11 groups[0]',
      'r.yaml null 5 rules[0].labels',
      'r.yaml null 8 rules[2]',
      'r.yaml null 8 rules[2].when',
      'r.yaml null 9 rules[3]',
    ])
  })

  it('print as lines that editors know, or as one sentence', () => {
    const one = () => parseRules(ruleOf('alert: A', 'for: 1m'), { file: 'r.yaml' })
    const two = () => parseRules(ruleOf('alert: A', 'for: 1m', 'x: y'), { file: 'r.yaml' })

    expect(one).toThrow(
      new RuleError([
        {
          file: 'r.yaml',
          line: 3,
          column: 5,
          path: '',
          rule: 'A',
          message: 'The rule has no condition: write when, on, or a window such as count.',
        },
      ]).message,
    )
    expect(one).toThrow(/^r\.yaml:3:5: A: The rule has no condition/)
    expect(two).toThrow(
      /^the rules have 2 problems:\n {2}r\.yaml:3:5: A: The rule.*\n {2}r\.yaml:5:5: A: This has no property x/,
    )
  })

  it('are in the order of the text', () => {
    const text = ruleOf('alert: A', 'when: wrong', 'x: y', 'for: soon')

    expect(problemsIn(text).map((line) => line.slice(0, 2))).toEqual(['4:', '5:', '6:'])
  })

  it('say where a name is repeated', () => {
    const text = `${ruleOf('alert: A', 'on: [error]')}\n  - { alert: A, on: [error], enabled: false }`

    expect(problemsIn(text)).toEqual(['5:14 Another rule has this name (line 3): use another one.'])
  })

  it('of the defaults of a group are reported once, and there', () => {
    const text = [
      'version: 1',
      'groups:',
      '  - name: all',
      '    defaults: { annotations: { a: "${wrong}" }, for: 2h }',
      '    rules: [{ alert: A, on: [error] }, { alert: B, on: [error], for: 1m }, { alert: C, on: [error] }]',
    ].join('\n')

    expect(problemsOf(() => parseRules(text)).map(({ line, path }) => `${line} ${path}`)).toEqual([
      '4 groups[0].defaults.annotations.a',
      '4 groups[0].defaults.for',
    ])
  })
})

describe('rules in TypeScript', () => {
  it('are the rules of a file, or a file', () => {
    const rule = { alert: 'A', on: ['error'] } as const

    expect(defineRules([rule]).names).toEqual(['A'])
    expect(defineRules({ version: 1, groups: [{ name: 'g', rules: [rule] }] }).names).toEqual(['A'])
  })

  it('have problems with a path and a character', () => {
    const found = problemsOf(() =>
      defineRules([
        { alert: 'A', on: ['error'] },
        { alert: 'B', count: { when: "id == 'x' && wrong", over: '1h', gte: 0 } },
      ]),
    )

    expect(found).toEqual([
      expect.objectContaining({
        file: null,
        line: null,
        column: null,
        rule: 'B',
        path: 'rules[1].count.gte',
      }),
      expect.objectContaining({
        path: 'rules[1].count.when',
        message: expect.stringMatching(/\(character 14\)$/),
      }),
    ])
  })

  it.each([[null], [undefined], [5], ['rules'], [{}], [[null]], [[[]]], [{ version: 1, rules: 5 }]])(
    'are refused with a RuleError where they are %j',
    (rules) => {
      expect(() => defineRules(Object(rules))).toThrow(RuleError)
      expect(() => Reflect.apply(defineRules, undefined, [rules])).toThrow(RuleError)
    },
  )
})
