import { globSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folderOf, rivulet } from './command.ts'

const RULES = `
version: 1
rules:
  - { alert: Failed, on: [monitor.error], key: { monitor: source } }
  - { alert: Never, on: [monitor.snapshot] }
`

const test = (name: string, expectation: string) => `
  - name: ${name}
    events: [{ at: 1m, error: no }]
    expect: [${expectation}]`

/** Runs the command on a test file with these tests. */
async function run(tests: string, ...options: readonly string[]) {
  const folder = await folderOf({ 'rules.yaml': RULES, 'a.test.yaml': `rules: [rules.yaml]\ntests:${tests}` })
  const file = join(folder, 'a.test.yaml')
  return { file, ...(await rivulet(['rules', 'test', file, ...options]).ended) }
}

const PASSING = test('it fires', '{ at: 1m, firing: Failed }')
const FAILING = test('it <fires> & "more"', '{ at: 2m, firing: Failed }')

describe('rivulet rules test', () => {
  it('runs the tests of the examples, in which every rule fires', async () => {
    const { code, stdout, stderr } = await rivulet([
      'rules',
      'test',
      'examples/rules/*.test.yaml',
      '--coverage',
      '100',
    ]).ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/\n13 of 13 rules fired\n$/)
    // Each rule file has tests of its own.
    const rules = globSync('examples/rules/*.yaml').filter((file) => !file.endsWith('.test.yaml'))
    expect(rules.map((file) => file.replace('.yaml', '.test.yaml')).toSorted()).toEqual(
      globSync('examples/rules/*.test.yaml').toSorted(),
    )
  })

  it('prints the tests, and the rules that never fired', async () => {
    const { code, stdout, file } = await run(PASSING)
    expect(stdout.replace(/\d+ ms/, '9 ms')).toBe(
      [
        file,
        '  ✓ it fires',
        '',
        '1 test: 1 passed (9 ms)',
        '1 of 2 rules fired',
        `  Never never fired (${file.replace('a.test', 'rules')})`,
        '',
      ].join('\n'),
    )
    expect(code).toBe(0)
  })

  it('exits with 1 where a test fails, and shows what was expected and what came', async () => {
    const { code, stdout, stderr, file } = await run(PASSING + FAILING)
    expect(stdout).toContain(
      [
        '  ✗ it <fires> & "more"',
        `    ${file}:8:14: at is 1m, not 2m`,
        '      expected  2m firing Failed',
        '      got       1m firing Failed { monitor: /v1/monitors/mon_1 }',
        '    What happened:',
        '      1m firing Failed { monitor: /v1/monitors/mon_1 }',
        '',
        '2 tests: 1 passed, 1 failed',
      ].join('\n'),
    )
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
  })

  it('says which events are one event, of tests that pass and that fail', async () => {
    const again = PASSING.replace(
      '{ at: 1m, error: no }',
      '$&, { at: 0, every: 1h, times: 24, state: completed }',
    )
    const { stdout, file } = await run(again)
    const line =
      '24 events are one event, since they have the same source and id: /v1/tasks/runs/trun_1, trun_1:completed'
    expect(stdout).toContain(`  ✓ it fires\n    ${file}:4:37: ${line}\n\n`)
    const failing = await run(again.replace('1m, firing', '2m, firing'), '--junit')
    expect(failing.stdout).toContain(`${failing.file}:4:37 ${line}\nwhat happened:`)
  })

  it('exits with 1 where too few rules fire', async () => {
    const { code, stderr } = await run(PASSING, '--coverage', '51')
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'rivulet: 50 % of the rules fire in a test: at least 51 % must\n',
    })
    expect((await run(PASSING, '--coverage', '50')).code).toBe(0)
  })

  it('exits with 2 where a file is not valid', async () => {
    const { code, stdout, stderr, file } = await run(test('it fires', '{ at: 1m, firing: Faild }'))
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: `rivulet: ${file}:5:32: There is no rule Faild: did you mean Failed? [rule]\n`,
    })
  })

  it('prints a report for CI systems as XML', async () => {
    const { code, stdout, file } = await run(PASSING + FAILING, '--junit')
    expect(stdout.replaceAll(/time="[\d.]+"/g, 'time="0"')).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" time="0">
  <testsuite name="${file}" tests="2" failures="1" time="0">
    <testcase name="it fires" classname="${file}" file="${file}" line="3" time="0"/>
    <testcase name="it &lt;fires&gt; &amp; &quot;more&quot;" classname="${file}" file="${file}" line="6" time="0">
      <failure message="at is 1m, not 2m">${file}:8:14
expected  2m firing Failed
got       1m firing Failed { monitor: /v1/monitors/mon_1 }
what happened:
  1m firing Failed { monitor: /v1/monitors/mon_1 }</failure>
    </testcase>
  </testsuite>
</testsuites>
`)
    expect(code).toBe(1)
  })

  it('prints a report as JSON', async () => {
    const { code, stdout } = await run(PASSING + FAILING, '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      passed: 1,
      failed: 1,
      tests: [
        { passed: true },
        { passed: false, failures: [{ line: 8, column: 14, message: 'at is 1m, not 2m' }] },
      ],
      coverage: {
        percent: 50,
        rules: [
          { rule: 'Failed', fired: 2 },
          { rule: 'Never', fired: 0 },
        ],
      },
    })
    expect(code).toBe(1)
  })
})
