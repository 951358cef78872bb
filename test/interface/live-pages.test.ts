import { readFileSync } from 'node:fs'
import type { ConnectOptions, Live, LiveErrorReason, LiveState } from 'rivulet/live'
import * as gateway from 'rivulet/gateway'
import type { Gateway, GatewayOptions, Grant, View } from 'rivulet/gateway'
import * as react from 'rivulet/react'
import type { DashboardOptions } from 'rivulet/dashboard'
import { describe, expect, it } from 'vitest'
import { PARTS } from '../../bench/bundle.ts'
import { refusalResponse } from '../../src/gateway/http-answer.ts'
import type { TokenOptions, Views } from '../../src/gateway/gateway-options.ts'
import type { ViewOptions } from '../../src/gateway/view.ts'
import type { LiveView } from '../../src/live/live.ts'
import type { CloseReason, GapReason, LiveFrames, RefusalCode } from '../../src/protocol/live.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const pages = {
  live: read('docs/reference/live.md'),
  gateway: read('docs/reference/gateway.md'),
  protocol: read('docs/reference/gateway-protocol.md'),
  dashboard: read('docs/reference/dashboard.md'),
}

/** The rows of the first table below a heading, as cells without backticks. */
function tableBelow(page: string, heading: string): string[][] {
  const [, below = ''] = page.split(`\n${heading}\n`)
  const rows = below.split('\n').slice(below.split('\n').findIndex((line) => line.startsWith('|')))
  return rows
    .slice(
      2,
      rows.findIndex((line) => !line.startsWith('|')),
    )
    .map((row) =>
      row
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
}

/** The first cell of each row. A member that is called stands with its arguments. */
const namesBelow = (page: string, heading: string) =>
  tableBelow(page, heading).map(([name = '']) => name.replace(/\(.*/, ''))

/** The members of an interface with the defaults of their doc comments, without those that have none. */
function defaultsOf(file: string, name: string): Record<string, string> {
  const [, body = ''] =
    new RegExp(`^export interface ${name}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(read(file)) ?? []
  const members = body.matchAll(/\/\*\*((?:(?!\*\/).)*)\*\/\s*readonly (\w+)\??: /gs)
  return Object.fromEntries(
    [...members].flatMap(([, doc = '', member = '']) => {
      const [, standard] = /Default:? `?([^.`]+)/.exec(doc.replaceAll(/\s+\*?\s*/g, ' ')) ?? []
      return standard === undefined ? [] : [[member, standard]]
    }),
  )
}

const sorted = (names: Iterable<string>) => [...names].toSorted()

// The compiler refuses a missing and an additional name.
const CONNECT_OPTIONS = Object.keys({
  url: true,
  getToken: true,
  share: true,
  offline: true,
  initial: true,
} satisfies Record<keyof ConnectOptions, true>)

const LIVE = Object.keys({
  view: true,
  status: true,
  search: true,
  addRuns: true,
  inspect: true,
  close: true,
} satisfies Record<Exclude<keyof Live<{}>, symbol>, true>)

const VIEW = Object.keys({
  subscribe: true,
  getSnapshot: true,
  getServerSnapshot: true,
  status: true,
  address: true,
} satisfies Record<keyof LiveView<unknown>, true>)

const STATES = Object.keys({
  connecting: true,
  live: true,
  stale: true,
  offline: true,
  denied: true,
} satisfies Record<LiveState, true>)

const REFUSALS: Readonly<Record<RefusalCode, true>> = {
  unauthenticated: true,
  expired: true,
  revoked: true,
  forbidden: true,
  unknown_view: true,
  invalid: true,
  too_many: true,
  unavailable: true,
  uncertain: true,
}

const REASONS = Object.keys({
  ...REFUSALS,
  network: true,
  timeout: true,
  protocol: true,
  token: true,
  closed: true,
} satisfies Record<LiveErrorReason, true>)

const GATEWAY_OPTIONS = Object.keys({
  log: true,
  views: true,
  path: true,
  origins: true,
  client: true,
  name: true,
  holdsRetention: true,
  maxConnections: true,
  heartbeat: true,
} satisfies Record<Exclude<keyof GatewayOptions<Views>, 'tokens'>, true>)

const TOKEN_OPTIONS = Object.keys({ secret: true, audience: true } satisfies Record<keyof TokenOptions, true>)

const GATEWAY = Object.keys({
  grant: true,
  ticket: true,
  revoke: true,
  snapshot: true,
  observe: true,
  done: true,
  close: true,
} satisfies Record<Exclude<keyof Gateway<{}>, symbol>, true>)

const VIEW_OPTIONS = Object.keys({
  version: true,
  types: true,
  where: true,
  key: true,
  reduce: true,
  params: true,
  source: true,
  timeToLive: true,
  startAt: true,
} satisfies Record<keyof ViewOptions<unknown, 'log.gap', string>, true>)

const GRANT = Object.keys({
  sub: true,
  views: true,
  sources: true,
  types: true,
  omit: true,
  requests: true,
  timeToLive: true,
} satisfies Record<keyof Grant, true>)

const FRAMES = Object.keys({
  open: true,
  snapshot: true,
  changes: true,
  position: true,
  current: true,
  gap: true,
  denied: true,
  heartbeat: true,
  close: true,
} satisfies Record<keyof LiveFrames, true>)

const GAPS = Object.keys({ retention: true, epoch: true, rebuilt: true, missed: true } satisfies Record<
  GapReason,
  true
>)

const CLOSES = Object.keys({ expired: true, revoked: true, shutdown: true } satisfies Record<
  CloseReason,
  true
>)

const DASHBOARD_OPTIONS = Object.keys({
  log: true,
  client: true,
  documents: true,
  origins: true,
  key: true,
} satisfies Record<keyof DashboardOptions, true>)

/** What the table of a heading says of the defaults that doc comments have. */
function shown(
  page: string,
  heading: string,
  defaults: Readonly<Record<string, string>>,
): Record<string, string> {
  const cells = tableBelow(page, heading).map((row) => [row[0], row.at(-1) ?? ''])
  return Object.fromEntries(cells.filter(([name = '']) => name in defaults))
}

describe('docs/reference/live.md', () => {
  it('has the options of connect, with their defaults', () => {
    const defaults = defaultsOf('src/live/live.ts', 'ConnectOptions')

    expect(namesBelow(pages.live, '## `connect(options)`')).toEqual(CONNECT_OPTIONS)
    expect(shown(pages.live, '## `connect(options)`', defaults)).toEqual(defaults)
    expect(Object.keys(defaults)).toEqual(['share', 'offline', 'initial'])
  })

  it('has the members of a connection and of a view, and the states of both', () => {
    expect(namesBelow(pages.live, '## Members of `live`')).toEqual(LIVE)
    expect(namesBelow(pages.live, '## A view')).toEqual(VIEW)
    expect(namesBelow(pages.live, '## States')).toEqual(STATES)
  })

  it('has each reason of an error, with the status of a refusal', () => {
    const rows = tableBelow(pages.live, '## `LiveError`')
    const statuses = Object.keys(REFUSALS).map((code) =>
      String(refusalResponse(code as RefusalCode, '').status),
    )

    expect(rows.map(([reason]) => reason)).toEqual(REASONS)
    expect(rows.slice(0, statuses.length).map(([, status = '']) => status.slice(0, 3))).toEqual(statuses)
  })

  it('has each export of rivulet/react', () => {
    const names = tableBelow(pages.live, '## React hooks').map(([use = '']) => /\w+/.exec(use)?.[0] ?? '')

    expect(sorted(names)).toEqual(sorted(Object.keys(react)))
  })

  it('has the limits of the sizes', () => {
    const bound = (name: string) => `${PARTS.find((part) => part.name === name)?.boundKb} kB`

    expect(pages.live).toContain(`\`rivulet/live\` has at most ${bound('rivulet/live')},`)
    expect(pages.live).toContain(`${bound('rivulet/live and rivulet/react')} with \`rivulet/react\``)
  })
})

describe('docs/reference/gateway.md', () => {
  it('has the options of a gateway, with their defaults', () => {
    const file = 'src/gateway/gateway-options.ts'
    const { maxConnections = '', heartbeat = '', path = '' } = defaultsOf(file, 'GatewayOptions')
    const { audience = '' } = defaultsOf(file, 'TokenOptions')
    const defaults = { maxConnections, heartbeat, path, 'tokens.audience': audience }

    expect(sorted(namesBelow(pages.gateway, '## Options'))).toEqual(
      sorted([...GATEWAY_OPTIONS, ...TOKEN_OPTIONS.map((name) => `tokens.${name}`)]),
    )
    expect(shown(pages.gateway, '## Options', defaults)).toEqual(defaults)
    expect(heartbeat).toBe('15,000')
  })

  it('has the members of a gateway, the options of a view, and the fields of a grant', () => {
    expect(namesBelow(pages.gateway, '## Members')).toEqual(GATEWAY)
    expect(namesBelow(pages.gateway, '## Views')).toEqual(VIEW_OPTIONS)
    expect(namesBelow(pages.gateway, '## Grants')).toEqual(GRANT)
    expect(pages.gateway).toContain('Defaults: 30 searches, 100 runs')
  })

  it('has each ready-made view, with its params, the source of its rows and their age', () => {
    const made = Object.entries(gateway).filter(([name]) => name.endsWith('View'))
    const views = made.map(([name, make]) => {
      const { params, definition } = (make as () => View<unknown, string>)()
      const { timeToLive, source } = definition
      const days = typeof timeToLive === 'number' ? timeToLive / 86_400_000 : undefined
      return { name, params: params.join(), source: source?.(['ID'])?.replace('ID', '') ?? '*', days }
    })
    const rows = tableBelow(pages.gateway, '## Ready-made views').map(
      ([name = '', params = '', , source = '', kept = '']) => ({
        name: name.replace('()', ''),
        params,
        source: source.replace(/\{\w+\}/, ''),
        days: /^\d+ days?$/.test(kept) ? Number.parseInt(kept, 10) : undefined,
      }),
    )

    expect(rows.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(views)
  })
})

describe('docs/reference/gateway-protocol.md', () => {
  it('has the frames, and the reasons for gaps and ends', () => {
    const rows = tableBelow(pages.protocol, '## Frames')
    const meaning = (frame: string) => rows.find(([name]) => name === frame)?.at(-1)

    expect(rows.map(([name]) => name)).toEqual(FRAMES)
    for (const gap of GAPS) expect(meaning('gap')).toContain(gap)
    for (const reason of CLOSES) expect(meaning('close')).toContain(reason)
  })
})

describe('docs/reference/dashboard.md', () => {
  it('has the options of createDashboard', () => {
    expect(namesBelow(pages.dashboard, '## `createDashboard(options)`')).toEqual(DASHBOARD_OPTIONS)
  })
})
