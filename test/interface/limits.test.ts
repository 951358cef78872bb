import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import * as limits from '../../src/protocol/limits.ts'
import { MAX_LIVE_VIEWS } from '../../src/protocol/live.ts'
import { quotaLimits } from '../../src/protocol/quotas.ts'
import { EVENT_WORK } from '../../src/rules/cel/work.ts'
import { MAX_DURATION } from '../../src/protocol/duration.ts'
import { LIMITS, MAX_REPORTED_ISSUES } from '../../src/service/http/request-limits.ts'
import { STORE_LIMITS } from '../../src/log/store/limits.ts'
import { codeIn, plain, rowsOf, tablesOf } from '../support/markdown-table.ts'

const read = (file: string) => readFileSync(file, 'utf8')
const PAGE = 'docs/reference/limits.md'

/** The value of a product, such as `4 * MIB` or `8 * 1024 ** 3`, with the constants of its file. */
function product(text: string, source: string): number {
  const factors = text
    .replaceAll('_', (mark, at: number) => (/\d/.test(text[at + 1] ?? '') ? '' : mark))
    .split(/ \* /)
  return factors.reduce((value, factor) => {
    const [base = '', exponent = '1'] = factor.split(' ** ')
    const number = /^\d/.test(base) ? Number(base) : valueIn(source, `const ${base} = `)
    return value * number ** Number(exponent)
  }, 1)
}

/** The value after a text of a source, such as `maxPending = `. */
function valueIn(source: string, before: string): number {
  const [, after] = source.split(before)
  const [text = ''] = /^[\w]+(?: \*{1,2} \w+)*/.exec(after ?? '') ?? []
  return text === '' ? Number.NaN : product(text, source)
}

const valueOf = (file: string, before: string) => valueIn(read(`${file}.ts`), before)

const count = (value: number) => value.toLocaleString('en')
const KIB = 1024
/** `4 MiB`. */
function size(bytes: number, unit = 'B'): string {
  const power = [3, 2, 1].find((each) => bytes % KIB ** each === 0) ?? 0
  return `${bytes / KIB ** power} ${['', 'Ki', 'Mi', 'Gi'][power]}${unit}`
}
/** `5 min`. */
function time(ms: number): string {
  const [name, unit] = [
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ].find(([, each]) => ms % Number(each) === 0) ?? ['ms', 1]
  return `${ms / Number(unit)} ${name}`
}

/** The rows of each table of figures, with the limits that the code has. */
const TABLES: Readonly<Record<string, readonly (readonly [what: string, limit: string])[]>> = {
  'The interface': [
    [
      'Events of one page of a monitor',
      `1 to ${limits.MAX_PAGE_LIMIT}; ${limits.DEFAULT_PAGE_LIMIT} by default`,
    ],
    ['Inputs of one request that adds runs', count(limits.MAX_RUNS_PER_REQUEST)],
    ['Spec and input of a run together', `${count(limits.MAX_RUN_CHARACTERS)} characters`],
    ["A group's event stream, while a run is active", time(limits.MAX_STREAM_DURATION)],
    ["A single run's event stream", time(limits.MAX_RUN_STREAM_DURATION)],
    ["A monitor's frequency", frequencies()],
    ["A key of a monitor's metadata", `${limits.MAX_METADATA_KEY} characters`],
    ["A value of a monitor's metadata", `${limits.MAX_METADATA_VALUE} characters`],
    [
      'Attempts at a webhook',
      `after ${time(limits.FIRST_WEBHOOK_RETRY)}, then doubling, for ${time(limits.WEBHOOK_HORIZON)}`,
    ],
  ],
  'The client': [
    ['Retries of one request', count(valueOf('src/transport/transport', ' retries = '))],
    [
      'Retries of all requests, beyond one for each five that succeed',
      count(valueOf('src/transport/retry-policy', 'MAX_BUDGET = ')),
    ],
    [
      'A `Retry-After` that is obeyed',
      time(valueOf('src/protocol/retry-after-header', 'MAX_RETRY_AFTER = ')),
    ],
    ['A response, decoded', size(valueOf('src/transport/transport', 'maxBodyBytes = '))],
    [
      "An event's data in a stream",
      size(valueOf('src/transport/transport', 'maxEventLength = '), ' characters'),
    ],
    ['Identities that `dedupe` knows', count(valueOf('operators/dedupe/recent-ids', 'CAPACITY = '))],
    [
      'Events that `deliver` buffers',
      `${valueOf('operators/deliver', 'highWaterMark = Math.max(')}, or twice \`concurrency\``,
    ],
    ['Values that `iterate` buffers', count(valueOf('operators/iterate', '{ highWaterMark = '))],
    ['Keys of `inMemory`', count(valueOf('src/streams/in-memory', 'maxKeys = '))],
  ],
  'The log': [
    ['A log in a file or on a server', size(valueOf('src/log/sqlite/retention', 'defaultMaxBytes: '))],
    ['A log in memory', size(valueOf('src/log/memory/retention', 'defaultMaxBytes: '))],
    ['Webhooks in its inbox', count(valueOf('src/log/store/inbox-store', 'maxDeliveries = '))],
    ['Size of its inbox', size(valueOf('src/log/store/inbox-store', 'maxBytes = '))],
    [
      'Identities of deleted entries',
      `${time(STORE_LIMITS.identities.minUptime)} of use, and ${count(STORE_LIMITS.identities.minNewer)} newer ones`,
    ],
    [
      'Unacknowledged entries of a consumer',
      `${count(valueOf('src/log/consume/consumer-options', '    maxUnacknowledged: '))}; up to ${count(valueOf('src/log/consume/consumer-options', "'maxUnacknowledged', maxUnacknowledged, 1, "))}`,
    ],
    ['Their JSON', size(valueOf('src/log/consume/in-flight-limit', 'MAX_OUT_LENGTH = '), ' characters')],
    [
      'One event of `log.append`, as JSON',
      size(valueOf('src/log/event-log/app-event', 'MAX_EVENT_LENGTH = '), ' characters'),
    ],
    [
      'Its source, and its id',
      `${count(valueOf('src/log/event-log/app-event', 'MAX_NAME_LENGTH = '))} characters`,
    ],
    ['Keys of a process for one entry', count(valueOf('src/streams/process-core', 'MAX_KEYS = '))],
    [
      'State of a key of a process, data of a timer',
      size(valueOf('src/streams/process-functions', 'maxStateBytes: ')),
    ],
    ['Events that one call of a process appends', count(valueOf('src/streams/sizes', 'MAX_OUTPUTS = '))],
    [
      'A snapshot of a process',
      `${count(valueOf('src/log/process/process-state', '{ limit = '))} keys and ${size(valueOf('src/log/process/process-state', 'MAX_SNAPSHOT_LENGTH = '), ' characters')}`,
    ],
    ['Removed keys of a process that are remembered', count(STORE_LIMITS.tombstones)],
    ['Logs that have one file open', count(valueOf('src/log/sqlite/slots', 'MAX_SLOTS = '))],
  ],
  'Webhook receivers': [
    ['Difference of `webhook-timestamp`', time(valueOf('src/webhooks/receiver', 'tolerance = '))],
    ['One body', size(valueOf('src/webhooks/receiver', 'maxBodyBytes = '))],
    ['All bodies together', size(valueOf('src/webhooks/receiver', 'Math.max('))],
    ['Time for a body', time(valueOf('src/webhooks/receiver', 'bodyTimeout = '))],
    ['Entries of a signature', count(valueOf('src/webhooks/signature', 'MAX_SIGNATURES = '))],
    ['Deliveries that wait in memory', count(valueOf('src/webhooks/memory-inbox', 'maxPending = '))],
    ['Ids that are known in memory', count(valueOf('src/webhooks/memory-inbox', 'maxIds = '))],
  ],
  'Gateways and pages': [
    ['Connections of a subject', count(valueOf('src/gateway/access/authority', 'maxConnections = '))],
    ['Views of a connection', count(MAX_LIVE_VIEWS)],
    [
      'Views of an `EventSource`',
      count(valueOf('src/gateway/stream/stream-request', 'MAX_EVENT_SOURCE_VIEWS = ')),
    ],
    ['Searches of a subject in a minute', count(valueOf('src/gateway/requests/requests', 'SEARCHES = '))],
    ['Runs of a subject in a minute', count(valueOf('src/gateway/requests/requests', 'RUNS = '))],
    [
      'Requests of a subject to add runs at the same time',
      count(valueOf('src/gateway/requests/requests', 'MAX_RUNNING = ')),
    ],
    ['A token', `${count(valueOf('src/gateway/access/tokens', 'MAX_TOKEN = '))} characters`],
    [
      'A grant',
      `${time(valueOf('src/gateway/access/checked-grant', 'TIME_TO_LIVE = '))}; up to ${time(valueOf('src/gateway/access/checked-grant', 'MAX_TIME_TO_LIVE = '))}`,
    ],
    ['A ticket', time(valueOf('src/gateway/access/tickets', 'TIME_TO_LIVE = '))],
    ['A row of a view', size(valueOf('src/gateway/feed/view-process', 'MAX_ROW_BYTES = '))],
    ['Views that a browser keeps offline', count(valueOf('src/live/offline-rows', 'MAX_VIEWS = '))],
  ],
  Rules: [
    ['Rules of one file', count(valueOf('src/rules/rule-file/schema', 'MAX_RULES = '))],
    ['Groups of one file', count(valueOf('src/rules/rule-file/schema', 'MAX_GROUPS = '))],
    ['A rule file', size(valueOf('src/rules/rule-file/yaml-source', 'MAX_FILE_BYTES = '))],
    ['A condition', `${count(valueOf('src/rules/cel/syntax', 'MAX_LENGTH = '))} characters`],
    ['A label', `${count(valueOf('src/rules/rule-file/schema', 'MAX_LABEL = '))} characters`],
    ['An annotation', `${count(valueOf('src/rules/rule-file/schema', 'MAX_ANNOTATION = '))} characters`],
    ['Types in `on`', count(valueOf('src/rules/rule-file/schema', 'MAX_TYPES = '))],
    ['Steps of a `sequence`', count(valueOf('src/rules/rule-file/schema', 'MAX_FILE_STEPS = '))],
    ['A duration', `${MAX_DURATION / 86_400_000}d`],
    [
      'Events of a window, for each key',
      count(valueOf('src/rules/evaluate/windows/window', 'MAX_NEEDED = ')),
    ],
    ['Values of a window, for each key', count(valueOf('src/rules/rule-file/schema', 'MAX_VALUES = '))],
    ['Members that a macro visits', count(valueOf('src/rules/cel/environment', 'MAX_MEMBERS = '))],
    ['Values of a result', count(valueOf('src/rules/cel/json-value', 'MAX_VALUES = '))],
    [
      'What `text` reads',
      `${count(valueOf('src/rules/cel/output', 'MAX_VALUES = '))} values and ${size(valueOf('src/rules/cel/output', 'MAX_TEXT = '))}`,
    ],
    ['Causes in an alert event', count(valueOf('src/rules/evaluate/alert-data', 'MAX_CAUSES = '))],
    ['Keys of `alerts`, in memory (`maxKeys`)', count(valueOf('src/rules/evaluate/in-memory', 'maxKeys = '))],
    ['Work of all rules for one event', `${count(EVENT_WORK)} units`],
  ],
  'Tools for language models': [
    ['A result', `${count(valueOf('src/tools/marked-result', 'MAX_RESULT = '))} characters of JSON`],
    ['Wait for a run', time(1_000 * valueOf('src/tools/research-tools', 'MAX_WAIT = '))],
    ['Calls that are under way', count(valueOf('src/tools/tool-server', 'MAX_CALLS = '))],
  ],
}

/** The least and the greatest of some frequencies that are accepted. */
function frequencies(): string {
  const accepted = ['1h', '30d', '5w', '31d'].filter((text) => limits.parseFrequency(text) !== undefined)
  return accepted.join(' to ')
}

describe('docs/reference/limits.md', () => {
  it.each(Object.entries(TABLES))('has the limits of the code: %s', (heading, rows) => {
    expect(rowsOf(PAGE, 'What', heading).map(([what, limit]) => [what, limit])).toEqual(rows)
    expect(rows.flat().join(' ')).not.toContain('NaN')
  })

  it('has the quotas', () => {
    const rows = Object.entries(quotaLimits({})).map(([name, { requests, window }]) => [
      `\`${name}\``,
      count(requests),
      time(window),
    ])

    expect(rowsOf(PAGE, 'Quota').map(([name, , requests, window]) => [name, requests, window])).toEqual(rows)
  })

  it('has the limits of the embedded service for one request', () => {
    const rows = rowsOf(PAGE, 'What', 'One request to the embedded service')
    const limitsOf = Object.entries({ ...LIMITS, issues: MAX_REPORTED_ISSUES })

    expect(rows.map(([, figure, name]) => `${plain(name)} ${figure}`).toSorted()).toEqual(
      limitsOf.map(([name, figure]) => `${name} ${count(figure)}`).toSorted(),
    )
  })

  it('names options that the interfaces of the package have', () => {
    const surface = globSync('etc/api/*.md').map(read).join('\n')
    const options = tablesOf(PAGE).flatMap(({ head, rows }) =>
      rows.flatMap((row) => codeIn(row[head.indexOf('Option')])).flatMap((path) => path.split('.')),
    )

    expect(options.filter((name) => !new RegExp(`\\b${name}\\b`).test(surface))).toEqual([])
    expect(options).toContain('maxPending')
  })
})
