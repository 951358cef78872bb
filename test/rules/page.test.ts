import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEventType } from 'rivulet'
import { notifyLogger, notifyAlertmanager, notifySlack, notifyWebhook } from 'rivulet/rules'
import { describe, expect, it, vi } from 'vitest'
import { isObject } from '../../src/protocol/json.ts'
import { FUNCTIONS, MACROS, METHODS } from '../../src/rules/cel/signatures.ts'
import { ruleFileJsonSchema } from '../../src/rules/rule-file/schema.ts'
import { MAX_TRANSITIONS } from '../../src/rules/rule-tests/run-test.ts'
import { EXPECTED, KINDS, SUBJECTS, testSchema } from '../../src/rules/rule-tests/schema.ts'

const ROOT = join(import.meta.dirname, '../..')
const pageOf = (path: string) => readFileSync(join(ROOT, 'docs', path), 'utf8')
const REFERENCE = pageOf('reference/rules.md')
const TESTING = pageOf('reference/rule-tests.md')
const SENDING = pageOf('reference/notifiers.md')

/** The cells of a table whose head begins with this cell. */
function rowsBelow(page: string, head: string): string[][] {
  const [, table = ''] = page.split(new RegExp(`^\\| ${head} .*\\n.*\\n`, 'm'))
  const [rows = ''] = table.split('\n\n')
  return rows
    .trim()
    .split('\n')
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}

/** The names in backticks of a text, without arguments and values. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/`(\w+)[^`]*`/g)].map(([, name = '']) => name)
}

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
const windows = rowsBelow(REFERENCE, 'Window').map(([name = '', fields = '']) => ({
  name: name.replaceAll('`', ''),
  fields: namesIn(fields),
}))

describe('docs/reference/rules.md', () => {
  it('has each field of a rule and each window with its fields', () => {
    const fields = rowsBelow(REFERENCE, 'Field').flatMap(([name = '']) => namesIn(name))

    expect([...fields, ...windows.map(({ name }) => name)].toSorted()).toEqual(
      propertiesOf(...RULE).toSorted(),
    )
    for (const { name, fields: names } of windows)
      expect({ name, fields: names.toSorted() }).toEqual({
        name,
        fields: propertiesOf(...RULE, 'properties', name).toSorted(),
      })
    for (const name of propertiesOf(...RULE, 'properties', 'resolve'))
      expect(REFERENCE).toContain(`\`${name}\``)
  })

  it('has the functions, methods and macros of conditions, and no other', () => {
    const own = rowsBelow(REFERENCE, 'Function').flatMap(([names = '']) => namesIn(names))
    const listed = (label: string) =>
      [...REFERENCE.matchAll(new RegExp(`^- ${label} (.*)$`, 'gm'))].flatMap(([, names = '']) =>
        namesIn(names),
      )

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

    expect(rowsBelow(REFERENCE, 'Event').map(([type]) => type)).toEqual(
      Object.keys(types).map((type) => `\`${type}\``),
    )
  })
})

describe('docs/reference/rule-tests.md', () => {
  it('has each kind of event and of expectation, and each of their fields', () => {
    const named = new Set(
      [...TESTING.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => code.match(/\w+/g) ?? []),
    )
    const { events, expect: expectations } = testSchema.shape
    const fields = [
      ...Object.keys(testSchema.shape),
      ...Object.keys(events.unwrap().element.shape),
      ...Object.keys(expectations.element.shape),
      ...KINDS,
      ...SUBJECTS,
      ...EXPECTED,
    ]

    expect(fields.filter((name) => !named.has(name))).toEqual([])
    expect(TESTING).toContain(`${MAX_TRANSITIONS.toLocaleString('en')} transitions`)
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
    const rows = rowsBelow(SENDING, 'Notifier').map(([notifier = '', , , name = '']) =>
      [notifier, name].map((cell) => cell.replaceAll('`', '')),
    )

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
