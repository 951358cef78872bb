import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RuleError, testRules } from 'rivulet/rules'
import type { RuleTestReport } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import { ruleTestsJsonSchema } from '../../../src/rules/rule-tests/schema.ts'
import { folderOf } from '../../cli/command.ts'

const RULES = `
version: 1
rules:
  - alert: Funding
    on: [monitor.event_stream]
    when: text(data.output).contains('Series')
    key: { company: data.output.content.company }
    labels: { severity: warning }
    annotations: { summary: 'Round of \${key.company}' }
    resolve: { after: 24h }
  - alert: Burst
    count: { when: "type == 'monitor.error'", over: 1h, gte: 3 }
    key: { monitor: source }
  - alert: Silent
    absence: { within: 3h }
  - alert: Off
    when: type == 'monitor.error'
    enabled: false
`

/** The report of a test file with these tests. */
async function run(tests: string, rules = RULES): Promise<RuleTestReport> {
  const folder = await folderOf({ 'rules.yaml': rules, 'rules.test.yaml': `rules: [rules.yaml]\n${tests}` })
  return testRules(join(folder, 'rules.test.yaml'))
}

/** The messages of the only test's failures. */
async function failures(tests: string): Promise<readonly string[]> {
  const { tests: results } = await run(tests)
  return results.flatMap((test) => test.failures.map(({ message }) => message))
}

/** `line:column: message`, for each problem of a test file. */
async function problems(text: string): Promise<readonly string[]> {
  const folder = await folderOf({ 'rules.yaml': RULES, 'rules.test.yaml': text })
  const error: unknown = await testRules(join(folder, 'rules.test.yaml')).catch((thrown: unknown) => thrown)
  if (!(error instanceof RuleError)) throw error
  return error.problems.map(({ line, column, message }) => `${line}:${column}: ${message}`)
}

const one = (events: string, expectations: string, more = '') => `
tests:
  - name: a test
${more}    events:
${events.replaceAll(/^(?=.)/gm, '      - ')}
    expect:
${expectations.replaceAll(/^(?=.)/gm, '      - ')}
`

const ACME = '{ at: 10m, event_stream: { company: Acme, text: Series B } }'

describe('tests of rules', () => {
  it('pass where the transitions and states are as expected', async () => {
    const { tests, passed, failed } = await run(
      one(
        ACME,
        `{ at: 10m, firing: Funding, key: { company: Acme }, annotations: { summary: Round of Acme } }
{ at: 5m, inactive: Funding }
{ at: 5m, none: true }
{ at: 12h, active: Funding, labels: { severity: warning } }
{ at: 24h10m, resolved: Funding, reason: expired, since: 10m }
{ never: Burst }`,
      ),
    )
    expect(tests).toMatchObject([{ passed: true, name: 'a test', line: 4, events: 1, failures: [] }])
    expect({ passed, failed }).toEqual({ passed: 1, failed: 0 })
  })

  it.each([
    ['a transition at another time', '{ at: 11m, firing: Funding }', ['at is 10m, not 11m']],
    [
      'another value of the key',
      '{ at: 10m, firing: Funding, key: { company: Bolt } }',
      ['key.company is Acme, not Bolt'],
    ],
    [
      'another label',
      '{ at: 10m, firing: Funding, labels: { severity: info } }',
      ['labels.severity is warning, not info'],
    ],
    [
      'another annotation',
      '{ firing: Funding, annotations: { summary: no } }',
      ['annotations.summary is Round of Acme, not no'],
    ],
    ['a rule that does nothing', '{ at: 10m, firing: Burst }', ['Burst did nothing']],
    [
      'a rule that fires less often',
      '{ firing: Funding }\n{ firing: Funding }\n{ at: 2d, resolved: Funding }',
      ['there is no other firing of Funding', 'at is 24h10m, not 2d'],
    ],
    [
      'another reason',
      '{ at: 2d, inactive: Funding }\n{ resolved: Funding, reason: condition }',
      ['reason is expired, not condition'],
    ],
    ['another cause', '{ firing: Funding, events: [event_2] }', ['events is event_1, not event_2']],
    ['an alert that is not firing then', '{ at: 5m, active: Funding }', ['Funding is not firing then']],
    ['an alert that is firing then', '{ at: 10m, inactive: Funding }', ['Funding is firing then']],
    ['an alert of whichever rule', '{ at: 10m, none: true }', ['alerts are firing then']],
    ['an alert that fires at all', '{ never: Funding }', ['Funding fired']],
    [
      'another key of what is firing',
      '{ at: 1h, active: Funding, key: { company: Bolt } }',
      ['key.company is Acme, not Bolt'],
    ],
  ])('fail for %s', async (_, expectations, messages) => {
    expect(await failures(one(ACME, expectations))).toEqual(messages)
  })

  it('say where a failure is, what was expected, what came instead and what happened', async () => {
    const { tests } = await run(one(ACME, '{ at: 11m, firing: Funding, key: { company: Acme } }'))
    expect(tests[0]).toMatchObject({
      passed: false,
      failures: [
        {
          line: 8,
          column: 9,
          expected: '11m firing Funding { company: Acme }',
          got: ['10m firing Funding { company: Acme }'],
        },
      ],
      happened: ['10m firing Funding { company: Acme }'],
    })
  })

  it('say that a rule with lateness decides so much later', async () => {
    const errors = '{ at: 0, every: 10m, times: 3, error: failed }'
    expect(await failures(one(errors, '{ at: 20m, firing: Burst }'))).toEqual([
      'at is 21m, not 20m (the rule has a lateness of 1m: it decides so much later)',
    ])
    expect(await failures(one(errors, '{ at: 21m, firing: Burst, value: 3, since: 20m }'))).toEqual([])
  })

  it('accept other transitions, unless they are exact', async () => {
    const events = `${ACME}\n{ at: 20m, event_stream: { company: Bolt, text: Series A } }`
    const expected = '{ at: 10m, firing: Funding, labels: { severity: warning } }'
    expect(await failures(one(events, expected))).toEqual([])
    expect(await failures(one(events, expected, '    exact: true\n'))).toEqual([
      'labels.alertname is Funding, not (absent); labels.company is Acme, not (absent)',
      'this was not expected, and the test is exact',
    ])
    const all =
      '{ at: 10m, firing: Funding, key: { company: Acme } }\n{ at: 20m, firing: Funding, key: { company: Bolt } }'
    expect(await failures(one(events, all, '    exact: true\n'))).toEqual([])
  })

  it('give each expectation a transition of its own, whichever their order', async () => {
    const events = `${ACME}\n{ at: 20m, event_stream: { company: Bolt, text: Series A } }`
    expect(await failures(one(events, '{ firing: Funding }\n{ at: 10m, firing: Funding }'))).toEqual([])
    expect(
      await failures(
        one(events, '{ firing: Funding }\n{ at: 10m, firing: Funding }\n{ at: 10m, firing: Funding }'),
      ),
    ).toHaveLength(1)
  })

  it('let time pass evenly', async () => {
    const silent = '{ at: 0, completion: true }'
    expect(
      await failures(one(silent, '{ at: 3h1m, firing: Silent, key: { source: /v1/monitors/mon_1 } }')),
    ).toEqual([])
  })

  it('record an event late where it says so', async () => {
    const events = `{ at: 0, error: one }\n{ at: 10m, error: two }\n{ at: 20m, recorded: 30m, error: three }\n{ at: 29m, error: four }`
    expect(await failures(one(events, '{ at: 30m, firing: Burst }\n{ at: 30m, late: Burst }'))).toEqual([
      'Burst did this less often than expected',
    ])
  })

  it('have the late events of a minute as one, at its end', async () => {
    const late = ['40m', '41m'].map((at) => `{ at: ${at}, recorded: 1h30m, error: late }`)
    const events = ['{ at: 0, error: one }', '{ at: 50m, error: two }', ...late].join('\n')
    const expected = '{ at: 1h31m, late: Burst, since: 1h30m }'
    expect(await failures(one(events, expected))).toEqual([])
    expect(await failures(one(events, `${expected}\n${expected}`))).toHaveLength(1)
  })

  it('count how often each rule fires, over all tests and files', async () => {
    const test = one(ACME, '{ at: 10m, firing: Funding }')
    const folder = await folderOf({
      'rules.yaml': RULES,
      'a.test.yaml': `rules: [rules.yaml]\n${test}`,
      'b.test.yaml': `rules: ['*.yaml']\n${test}`,
    })
    const { coverage, passed } = await testRules(join(folder, '*.test.yaml'))
    expect(passed).toBe(2)
    expect(coverage.map(({ rule, fired }) => [rule, fired])).toEqual([
      ['Funding', 2],
      ['Burst', 0],
      ['Silent', 0],
    ])
  })

  it('make events of each kind, from each source, that rules read', async () => {
    const kinds = [
      ['{ at: 1m, monitor: m1, event_stream: found }', 'monitor.event_stream', '/v1/monitors/m1'],
      [
        '{ at: 1m, snapshot: { price: 2 }, previous: { price: 1 } }',
        'monitor.snapshot',
        '/v1/monitors/mon_1',
      ],
      ['{ at: 1m, completion: true }', 'monitor.completion', '/v1/monitors/mon_1'],
      ['{ at: 1m, error: no }', 'monitor.error', '/v1/monitors/mon_1'],
      ['{ at: 1m, group: g1, error: no }', 'error', '/v1/tasks/groups/g1'],
      ['{ at: 1m, cancelled: true }', 'monitor.cancelled', '/v1/monitors/mon_1'],
      ['{ at: 1m, run: r1, state: failed, error: why }', 'task_run.state', '/v1/tasks/runs/r1'],
      ['{ at: 1m, status: { is_active: false } }', 'task_group.status', '/v1/tasks/groups/tgrp_1'],
      ['{ at: 1m, gap: lost }', 'stream.gap', '/v1/monitors/mon_1'],
      ['{ at: 1m, live: true }', 'source.live', '/v1/monitors/mon_1'],
      ['{ at: 1m, group: g1, lost: down }', 'source.lost', '/v1/tasks/groups/g1'],
      [
        '{ at: 1m, source: /x, type: source.failed, data: { error: { name: A, message: B } } }',
        'source.failed',
        '/x',
      ],
    ]
    const types = kinds.map(([, type]) => type)
    const rules = `version: 1\nrules: [{ alert: Any, on: [${types.join()}], when: 'true', key: { type: type, source: source } }]`
    const expected = kinds.map(
      ([, type, source]) => `{ at: 1m, firing: Any, key: { type: ${type}, source: ${source} } }`,
    )
    const report = await run(one(kinds.map(([event]) => event).join('\n'), expected.join('\n')), rules)
    expect(report.tests.flatMap((test) => test.failures)).toEqual([])
  })

  it('give an output a basis, for all fields or by field', async () => {
    const rules = `
version: 1
rules:
  - alert: Low
    on: [monitor.event_stream]
    when: confidence('price') == 'low' && hosts(data.output) == 2 && quoted('price')
`
    const event = `{ at: 1m, event_stream: { price: 12, unit: kg }, confidence: { price: low }, citations: [https://a.example.com/1, https://b.example.org/2], excerpts: { price: [costs 12] } }`
    expect((await run(one(event, '{ at: 1m, firing: Low }'), rules)).failed).toBe(0)
    const high = event.replace('price: low', 'unit: low')
    expect((await run(one(high, '{ never: Low }'), rules)).failed).toBe(0)
  })

  it('merge events that a log keeps once, and say so', async () => {
    const rules = `
version: 1
rules: [{ alert: Many, on: [task_run.state, monitor.cancelled], count: { over: 1d, gte: 2 } }]`
    const events = `{ at: 0, every: 1h, times: 24, state: completed }
{ at: 1m, cancelled: true }
{ at: 2m, cancelled: true }
{ at: 1m, event_stream: a, id: same }
{ at: 2m, event_stream: b, id: same, monitor: other }`
    const { tests } = await run(one(events, '{ never: Many }\n{ at: 1m, firing: Many }'), rules)
    const [test] = tests
    expect(test).toMatchObject({ events: 4 })
    const messages = test?.merged.map(({ line, message }) => `${line}: ${message}`)
    expect(messages).toEqual([
      '8: 2 events are one event, since they have the same source and id: /v1/monitors/mon_1, mon_1:cancelled',
      '6: 24 events are one event, since they have the same source and id: /v1/tasks/runs/trun_1, trun_1:completed',
    ])
  })

  it('take a more complete event of the same run as its next revision', async () => {
    const rules = `
version: 1
rules:
  - { alert: Answered, on: [task_run.state], when: "revision == 2 && data.output.content.price == 12", per: event }`
    const events = `{ at: 1m, state: completed, input: a question }
{ at: 2m, state: completed, output: { price: 12 } }
{ at: 3m, state: completed }`
    const { tests } = await run(one(events, '{ at: 2m, firing: Answered }'), rules)
    expect(tests).toMatchObject([{ passed: true, events: 2, merged: [{ line: 8 }] }])
    const revised = events.replace('completed }', 'completed, revision: 3 }')
    expect((await run(one(revised, '{ at: 2m, firing: Answered }'), rules)).tests).toMatchObject([
      { passed: true, events: 3, merged: [] },
    ])
  })

  it('report a limited number of merged events', async () => {
    const twice = Array.from(
      { length: 101 },
      (_, n) => `{ at: 1m, every: 1m, times: 2, run: r${n}, state: completed }`,
    )
    const { tests } = await run(one(twice.join('\n'), '{ never: Burst }'))
    expect(tests.map(({ merged }) => merged.length)).toEqual([100])
  })

  it('give runs, FindAll runs and cancelled monitors metadata', async () => {
    const rules = `
version: 1
rules:
  - alert: Team
    on: [task_run.state, findall.status, monitor.cancelled]
    when: |
      type == 'task_run.state' ? data.run.metadata.team == 'a'
      : type == 'findall.status' ? data.data.metadata.team == 'a'
      : data.metadata.team == 'a'
    key: { type: type }
  - { alert: Input, on: [task_run.state], when: data.input.metadata.team == 'a' }`
    const events = `{ at: 1m, state: completed, input: a question, metadata: { team: a } }
{ at: 2m, find_all: f, status: { is_active: false }, metadata: { team: a } }
{ at: 3m, cancelled: true, metadata: { team: a, rank: 3 } }`
    const expected = `{ at: 1m, firing: Team, key: { type: task_run.state } }
{ at: 1m, firing: Input }
{ at: 2m, firing: Team, key: { type: findall.status } }
{ at: 3m, firing: Team, key: { type: monitor.cancelled } }`
    expect((await run(one(events, expected), rules)).tests.flatMap(({ failures: all }) => all)).toEqual([])
    const other = events.replaceAll('team: a', 'team: b')
    expect((await run(one(other, '{ never: Team }\n{ never: Input }'), rules)).failed).toBe(0)
  })

  it('fail where the rules emit more than is compared', async () => {
    const rules = `version: 1\nrules: [{ alert: Each, on: [monitor.completion], per: event, resolve: { after: 1s } }]`
    const { tests } = await run(
      one('{ at: 0, every: 1m, times: 10001, completion: true }', '{ firing: Each }'),
      rules,
    )
    expect(tests.flatMap((test) => test.failures.map(({ message }) => message))).toEqual([
      'the rules emit too much: the rest of the test was not compared',
    ])
  })

  it('pass a month in virtual time', async () => {
    const { tests, failed } = await run(
      one(
        '{ at: 0, every: 1h, times: 720, completion: true }',
        '{ never: Silent }\n{ at: 30d, active: Silent }',
      ),
    )
    expect(failed).toBe(1)
    expect(tests[0]).toMatchObject({ events: 720, simulated: 30 * 86_400_000 + 999 })
  })
})

describe('a test file that is not valid', () => {
  it('is refused with all of its problems, with their lines and columns', async () => {
    const text = `rules: [rules.yaml]
tests:
  - name: first
    events:
      - { at: 10x, completion: true }
    expect:
      - { at: 10m, firing: Fundng }
  - name: second
    events:
      - { at: 0 }
      - { at: 0, completion: true, error: no }
      - { at: 0, group: g, completion: true }
      - { at: 0, completion: true, citations: [x] }
      - { at: 0, every: 5m, completion: true }
      - { at: 10m, recorded: 5m, completion: true }
    expect:
      - { at: 10m, firing: Fundng }
      - { at: 10m, firing: Off }
      - { active: Funding }
      - { at: 10m, firing: Funding, key: { firm: Acme } }
      - { at: 10m, firing: Funding, resolved: Funding }
      - { at: 10m, none: true, value: 3 }
      - { at: 10m }
  - name: first
    expectation: []
`
    expect(await problems(text)).toEqual([
      '5:15: events[0].at must be a time since start such as 10m or 1h30m, or one such as 2026-01-01T12:00:00Z, not 10x.',
      expect.stringMatching(/^10:9: The event has no kind: write one of event_stream, /),
      '11:36: An event is either completion or error: write two events.',
      '12:18: completion comes from monitor, not from group.',
      '13:36: citations belongs to an output, and this event has none: remove it.',
      '14:18: every needs times: write both, such as every: 5m, times: 12.',
      '15:30: recorded must not be before at: an event is recorded after it.',
      '17:28: There is no rule Fundng: did you mean Funding?',
      '18:28: The rule Off is disabled: remove enabled: false.',
      '19:9: active is a state at a time: write at.',
      '20:44: Funding has no key firm: write one of company.',
      '21:37: An expectation is either firing or resolved: write two.',
      '22:32: none has no value: remove it.',
      expect.stringMatching(/^23:9: The expectation says nothing: write one of firing, /),
      '24:5: expect is missing: write a list of expectations, at least one and at most 5000.',
      '25:5: This has no property expectation: it can have name, start, until, exact, events, expect.',
    ])
  })

  it('is refused with the problems of its rule files', async () => {
    const folder = await folderOf({
      'bad.yaml': 'version: 1\nrules: [{ alert: A, when: nothing == 1 }]',
      'a.test.yaml': 'rules: [bad.yaml, missing.yaml]\ntests: [{ name: a, expect: [{ never: A }] }]',
    })
    const error: unknown = await testRules(join(folder, 'a.test.yaml')).catch((thrown: unknown) => thrown)
    const found = error instanceof RuleError ? error.problems.map(({ file, line }) => [file, line]) : error
    expect(found).toEqual([
      [join(folder, 'missing.yaml'), null],
      [join(folder, 'bad.yaml'), 2],
    ])
  })

  it('is refused where it repeats an event too often, or for too long', async () => {
    const file = (event: string) => `rules: [rules.yaml]\n${one(event, '{ never: Funding }')}`
    expect(await problems(file('{ at: 0, every: 1s, times: 100001, completion: true }'))).toEqual([
      '6:36: events[0].times must be a whole number from 1 to 100000, not 100001.',
    ])
    const many = '{ at: 0, every: 1s, times: 100000, completion: true }'
    expect(await problems(file(`${many}\n${many}\n${many}`))).toEqual([
      '8:9: The test has more than 200000 events: use fewer times.',
    ])
    expect(await problems(file('{ at: 0, every: 365d, times: 11, completion: true }'))).toEqual([
      '6:9: A test takes at most 10 years: use fewer times, or a shorter every.',
    ])
  })
})

describe('the schema of test files', () => {
  it('is the one that the package has', () => {
    const published: unknown = JSON.parse(
      readFileSync(new URL(import.meta.resolve('rivulet/rule-tests.schema.json')), 'utf8'),
    )
    expect(published, 'npm run rules-schema writes it').toEqual(
      JSON.parse(JSON.stringify(ruleTestsJsonSchema())),
    )
  })
})
