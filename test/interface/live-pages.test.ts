import type { LiveErrorReason, LiveState } from 'rivulet/live'
import * as gateway from 'rivulet/gateway'
import type { View } from 'rivulet/gateway'
import * as react from 'rivulet/react'
import { describe, expect, it } from 'vitest'
import { PARTS } from '../../bench/bundle.ts'
import { memberNames } from '../../build/tables/interfaces.ts'
import { refusalResponse } from '../../src/gateway/http-answer.ts'
import type { CloseReason, GapReason, RefusalCode } from '../../src/protocol/live.ts'
import { codeIn, namesIn, plain, rowsOf } from '../support/markdown-table.ts'

const LIVE = 'docs/reference/live.md'
const GATEWAY = 'docs/reference/gateway.md'

/** The members in the first column of the table of a section, sorted. */
const membersBelow = (page: string, section: string) =>
  rowsOf(page, 'Member', section)
    .flatMap(([name]) => namesIn(name))
    .toSorted()

// The compiler refuses a missing and an additional name.
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

const GAPS = Object.keys({ retention: true, epoch: true, rebuilt: true, missed: true } satisfies Record<
  GapReason,
  true
>)

const CLOSES = Object.keys({ expired: true, revoked: true, shutdown: true } satisfies Record<
  CloseReason,
  true
>)

describe('docs/reference/live.md', () => {
  it('has the members of a connection and of a view, and the states of both', () => {
    expect(membersBelow(LIVE, 'Members of `live`')).toEqual(memberNames('Live'))
    expect(membersBelow(LIVE, 'A view')).toEqual(memberNames('LiveView'))
    expect(rowsOf(LIVE, '`state`').map(([state]) => plain(state))).toEqual(STATES)
  })

  it('has each reason of an error, with the status of a refusal', () => {
    const rows = rowsOf(LIVE, '`reason`')
    const statuses = Object.keys(REFUSALS).map((code) =>
      String(refusalResponse(code as RefusalCode, '').status),
    )

    expect(rows.map(([reason]) => plain(reason))).toEqual(REASONS)
    expect(rows.slice(0, statuses.length).map(([, status = '']) => status.slice(0, 3))).toEqual(statuses)
  })

  it('has each export of rivulet/react', () => {
    const names = rowsOf(LIVE, 'Hook').flatMap(([use]) => codeIn(use).map((code) => /\w+/.exec(code)?.[0]))

    expect([...new Set(names)].toSorted()).toEqual(Object.keys(react).toSorted())
  })

  it('has the limits of the sizes', () => {
    const bound = (name: string) => `${PARTS.find((part) => part.name === name)?.boundKb} kB`
    expect(rowsOf(LIVE, 'Imports').map(([, withoutTabs]) => withoutTabs)).toEqual([
      bound('rivulet/live'),
      bound('rivulet/live and rivulet/react'),
    ])
  })
})

describe('docs/reference/gateway.md', () => {
  it('has the members of a gateway', () => {
    expect(membersBelow(GATEWAY, 'Members')).toEqual(memberNames('Gateway'))
  })

  it('has each ready-made view, with its params, the source of its rows and their age', () => {
    const made = Object.entries(gateway).filter(([name]) => name.endsWith('View'))
    const views = made.map(([name, make]) => {
      const { params, definition } = (make as () => View<unknown, string>)()
      const { timeToLive, source } = definition
      const days = typeof timeToLive === 'number' ? timeToLive / 86_400_000 : undefined
      return { name, params: params.join(), source: source?.(['ID'])?.replace('ID', '') ?? '*', days }
    })
    const rows = rowsOf(GATEWAY, 'View').map((row) => {
      const [name = '', params = '', , source = '', kept = ''] = row.map(plain)
      return {
        name: name.replace('()', ''),
        params,
        source: source.replace(/\{\w+\}/, ''),
        days: /^\d+ days?$/.test(kept) ? Number.parseInt(kept, 10) : undefined,
      }
    })

    expect(rows.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(views)
  })
})

describe('docs/reference/gateway-protocol.md', () => {
  it('has the frames, and the reasons for gaps and ends', () => {
    const rows = rowsOf('docs/reference/gateway-protocol.md', 'Frame').map((row) => row.map(plain))
    const meaning = (frame: string) => rows.find(([name]) => name === frame)?.at(-1)

    expect(rows.map(([name]) => name).toSorted()).toEqual(memberNames('LiveFrames'))
    for (const gap of GAPS) expect(meaning('gap')).toContain(gap)
    for (const reason of CLOSES) expect(meaning('close')).toContain(reason)
  })
})

describe('docs/reference/dashboard.md', () => {
  it('has the members of a dashboard', () => {
    expect(membersBelow('docs/reference/dashboard.md', 'Members')).toEqual(
      memberNames('Dashboard', 'src/dashboard/dashboard.ts'),
    )
  })
})
