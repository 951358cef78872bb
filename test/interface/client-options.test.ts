import { readFileSync } from 'node:fs'
import { createClient } from 'rivulet'
import type { ClientOptions } from 'rivulet'
import type { Timeouts } from 'rivulet/transport'
import { describe, expect, it } from 'vitest'

/** An option, from its declaration or its row in the table. */
interface Option {
  readonly name: string
  readonly type: string
  /** The text without backticks; undefined where there is none. */
  readonly default: string | undefined
}

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** The shapes of types without an exported name, as the table has them. */
const SHAPES: Readonly<Record<string, string>> = {
  QuotaSettings: '{ [quota]: { requests, window } } | false',
}

/** The rows of the table in docs/reference/client.md. */
function rowsOf(page: string): Option[] {
  return page.split('\n').flatMap((line): Option[] => {
    const [, name, type, standard] = line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('`', ''))
    if (!line.startsWith('| `') || name === undefined || type === undefined) return []
    return [{ name, type: type.replaceAll('\\|', '|'), default: standard }]
  })
}

/** The members of an interface, each with the default in its doc comment. */
function membersOf(file: string, name: string): Option[] {
  const [, body = ''] =
    new RegExp(`^export interface ${name}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(read(file)) ?? []
  const members = body.matchAll(/\/\*\*((?:(?!\*\/).)*)\*\/\s*readonly (\w+)\??: ([^\n]+)\n/gs)
  return [...members].map(([, doc = '', member = '', type = '']) => ({
    name: member,
    type: type.replace(/ \| undefined$/, '').replace(/^\((.+)\)$/, '$1'),
    default: /Default:? `?(.+?)`?(?:\.(?:\s|$)|$)/s.exec(doc.replaceAll(/\s+\*?\s*/g, ' ').trim())?.[1],
  }))
}

const rows = rowsOf(read('docs/reference/client.md'))
const timeouts = membersOf('src/transport/exchange.ts', 'Timeouts').map(
  ({ name, type, default: standard }) => ({
    name: `timeouts.${name}`,
    type,
    default: standard,
  }),
)
const declared = [
  ...membersOf('src/client.ts', 'ClientOptions'),
  ...membersOf('src/protocol/backoff.ts', 'Backoff'),
  ...membersOf('src/transport/endpoint.ts', 'EndpointSettings'),
  ...membersOf('src/transport/transport.ts', 'TransportSettings'),
  ...timeouts,
  // Set by the client: `initialDelay` and `maxDelay` are the backoff, `diagnostics` emits the retries and the waits.
].filter(({ name }) => !['backoff', 'onRetry', 'onQuotaWait'].includes(name))

// The compiler refuses a missing and an additional name.
const OPTIONS = Object.keys({
  baseUrl: true,
  apiKey: true,
  betaHeader: true,
  headers: true,
  allowInsecure: true,
  timeouts: true,
  retries: true,
  initialDelay: true,
  maxDelay: true,
  maxBodyBytes: true,
  maxEventLength: true,
  quotas: true,
  scheduler: true,
  random: true,
  fetch: true,
  exchange: true,
  logger: true,
  patience: true,
} satisfies Record<keyof ClientOptions, true>)

const TIMEOUTS = Object.keys({
  connect: true,
  headers: true,
  silence: true,
} satisfies Record<keyof Timeouts, true>).map((name) => `timeouts.${name}`)

describe('the table of options in docs/reference/client.md', () => {
  it('has each option of the client, and no other', () => {
    expect(rows.map(({ name }) => name).toSorted()).toEqual([...OPTIONS, ...TIMEOUTS].toSorted())
  })

  it('has the types of the declarations', () => {
    const typed = (options: readonly Option[]) =>
      Object.fromEntries(options.map(({ name, type }) => [name, SHAPES[type] ?? type]))

    expect(typed(rows)).toEqual(typed(declared))
  })

  it('has the defaults of the doc comments', () => {
    const wrong = declared.filter((option) => {
      const row = rows.find(({ name }) => name === option.name)
      const unit = row?.default?.replace(/ (ms|bytes|characters)$/, '').replaceAll(',', '')
      return option.default !== undefined && unit !== option.default.replaceAll(/[,`]/g, '')
    })

    expect(wrong).toEqual([])
    expect(declared.filter((option) => option.default !== undefined).length).toBeGreaterThanOrEqual(14)
  })

  it('has the timeouts of a request', async () => {
    const documented = rows.flatMap(({ name, default: standard = '' }) =>
      name.startsWith('timeouts.')
        ? [[name.slice('timeouts.'.length), Number(standard.replaceAll(/\D/g, ''))]]
        : [],
    )
    const sent = await new Promise((resolve) => {
      const client = createClient({
        baseUrl: 'http://127.0.0.1:1',
        apiKey: null,
        exchange: (request) => {
          resolve(request.timeouts)
          return { pause() {}, resume() {}, abort() {} }
        },
      })
      client.get('/v1/x').subscribe().unsubscribe()
    })

    expect(sent).toEqual(Object.fromEntries(documented))
  })
})
