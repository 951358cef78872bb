import { readFileSync } from 'node:fs'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEventType } from 'rivulet'
import { notifyLogger, notifyAlertmanager, notifySlack, notifyWebhook } from 'rivulet/rules'
import { describe, expect, it, vi } from 'vitest'
import { isObject } from '../../src/protocol/json.ts'
import { FUNCTIONS, MACROS, METHODS } from '../../src/rules/cel/signatures.ts'
import { ruleFileJsonSchema } from '../../src/rules/rule-file/schema.ts'
import { MAX_TRANSITIONS } from '../../src/rules/rule-tests/run-test.ts'
import { EXPECTED, KINDS, SUBJECTS, testSchema } from '../../src/rules/rule-tests/schema.ts'
import { codeIn, namesIn, plain, rowsOf } from '../support/markdown-table.ts'

const RULES = 'docs/reference/rules.md'
const TESTS = 'docs/reference/rule-tests.md'
const NOTIFIERS = 'docs/reference/notifiers.md'

/** A value within a JSON Schema. */
function inSchema(...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, name) => (isObject(value) ? value[name] : undefined),
    ruleFileJsonSchema(),
  )
}

function propertiesOf(...path: readonly string[]): string[] {
  return Object.keys(Object(inSchema(...path, 'properties')))
}

const RULE = ['properties', 'rules', 'items']
const windows = rowsOf(RULES, 'Window').map(([name, fields]) => ({
  name: plain(name),
  fields: namesIn(fields),
}))

describe('docs/reference/rules.md', () => {
  it('has each field of a rule and each window with its fields', () => {
    const rows = rowsOf(RULES, 'Field')
    const fields = rows.flatMap(([name]) => namesIn(name))

    expect([...fields, ...windows.map(({ name }) => name)].toSorted()).toEqual(
      propertiesOf(...RULE).toSorted(),
    )
    for (const { name, fields: names } of windows)
      expect({ name, fields: names.toSorted() }).toEqual({
        name,
        fields: propertiesOf(...RULE, 'properties', name).toSorted(),
      })
    const [, resolve] = rows.find(([name]) => name === '`resolve`') ?? []
    expect(namesIn(resolve)).toEqual(expect.arrayContaining(propertiesOf(...RULE, 'properties', 'resolve')))
  })

  it('has the functions, methods and macros of conditions, and no other', () => {
    const own = rowsOf(RULES, 'Function').flatMap(([names]) => namesIn(names))
    const text = readFileSync(RULES, 'utf8')
    const listed = (label: string) =>
      [...text.matchAll(new RegExp(`^- ${label} (.*)$`, 'gm'))].flatMap(([, names = '']) => namesIn(names))

    expect([...own, ...listed('functions')].toSorted()).toEqual([...FUNCTIONS.keys()].toSorted())
    expect(listed('methods').toSorted()).toEqual([...METHODS.keys()].toSorted())
    expect(listed('macros').toSorted()).toEqual([...MACROS.keys()].toSorted())
  })

  it('has the events of alerts', () => {
    const types = {
      'alert.pending': true,
      'alert.inactive': true,
      'alert.firing': true,
      'alert.resolved': true,
      'alert.unknown': true,
      'alert.known': true,
      'alert.late': true,
    } satisfies Record<Extract<ResearchEventType, `alert.${string}`>, true>

    expect(rowsOf(RULES, 'Event').map(([type]) => type)).toEqual(
      Object.keys(types).map((type) => `\`${type}\``),
    )
  })
})

describe('docs/reference/rule-tests.md', () => {
  const { events, expect: expectations } = testSchema.shape
  const fields = {
    Events: Object.keys(events.unwrap().element.shape),
    Expectations: Object.keys(expectations.element.shape),
  }
  /** The fields that are written in the first column of a table. */
  const written = (section: keyof typeof fields) =>
    rowsOf(TESTS, 'Written', section)
      .flatMap(([cell]) => codeIn(cell))
      .map((code) => /^\w+(?=: )/.exec(code)?.[0] ?? code)

  it('has each kind of event and of expectation, and none that there is not', () => {
    expect(written('Events')).toEqual(expect.arrayContaining([...KINDS]))
    expect(written('Events').filter((name) => !fields.Events.includes(name))).toEqual([])
    expect(written('Expectations')).toEqual(EXPECTED)
  })

  it('has each of their fields, and those of a test', () => {
    const text = readFileSync(TESTS, 'utf8')
    const named = new Set(
      codeIn(text.replaceAll(/^```[^]*?^```/gm, '')).flatMap((code) => code.match(/\w+/g)),
    )
    const all = [...Object.keys(testSchema.shape), ...fields.Events, ...fields.Expectations, ...SUBJECTS]

    expect(all.filter((name) => !named.has(name))).toEqual([])
    expect(text).toContain(`${MAX_TRANSITIONS.toLocaleString('en')} transitions`)
  })
})

describe('docs/reference/notifiers.md', () => {
  it('has each notifier with its default name', async () => {
    await using log = await openLog(memoryStore())
    const url = 'http://127.0.0.1:9'
    const notifiers = {
      notifyAlertmanager: notifyAlertmanager(log, { urls: url }),
      notifyWebhook: notifyWebhook(log, { url }),
      notifySlack: notifySlack(log, { url }),
      notifyLogger: notifyLogger(log),
    }
    const rows = rowsOf(NOTIFIERS, 'Notifier').map(([notifier, , , name]) => [notifier, name].map(plain))

    expect(rows.map(([notifier]) => notifier)).toEqual(Object.keys(notifiers))
    await vi.waitFor(
      async () => {
        const { readers } = await log.stats()
        expect(new Set(readers.map(({ name }) => name))).toEqual(new Set(rows.map(([, name]) => name)))
      },
      { timeout: 10_000, interval: 5 },
    )
    await Promise.all(Object.values(notifiers).map((job) => job.stop()))
  })
})
