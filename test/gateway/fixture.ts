import { setImmediate as turn } from 'node:timers/promises'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { createGateway, nodeListener, view } from 'rivulet/gateway'
import type { Gateway, GatewayOptions, Views } from 'rivulet/gateway'
import { onTestFinished } from 'vitest'
import { append } from '../log/append.ts'
import { change } from '../operators/events.ts'
import { openStream } from './client.ts'
import type { ClientModel } from './client.ts'
import { serve } from '../support/serve.ts'

/** The secret of the gateways under test. */
export const SECRET = 'a secret of thirty-two bytes or more'

/** What a test's view has of an item: its last value, and how often it was set. */
export interface Item {
  readonly value: string
  readonly times: number
}

let count = 0
/** An event that sets an item of a list; an empty value removes it. */
export function setItem(list: string, item: string, value: string): ResearchEvent {
  count += 1
  return change(`${list}/${item}=${value}#${count}`, list)
}

function pathOf(id: string): readonly string[] {
  const [, list = '', item = ''] = /^([^/]*)\/([^=]*)=/.exec(id) ?? []
  return item === '' ? [list] : [list, item]
}

function reduced(row: Item | undefined, id: string): Item | null {
  const value = /=(.*)#\d+$/.exec(id)?.[1] ?? ''
  return value === '' ? null : { value, times: (row?.times ?? 0) + 1 }
}

/** The items that {@link setItem} sets, by list and item. The list is their source. */
const items = view({
  version: 1,
  types: ['monitor.event_stream'],
  params: ['list'],
  key: ({ data }) => pathOf(data.event_id),
  reduce: (row: Item | undefined, { data }) => reduced(row, data.event_id),
  source: ([list = '']) => `/v1/monitors/${list}`,
})

/** The same rows, followed all together. */
export const everything = view({
  version: 1,
  types: ['monitor.event_stream'],
  key: ({ data }) => pathOf(data.event_id),
  reduce: (row: Item | undefined, { data }) => reduced(row, data.event_id),
  source: ([list = '']) => `/v1/monitors/${list}`,
})

/** The views of most tests. */
export const VIEWS = { items, everything }

/** A gateway over a log, behind a server. */
export interface Served {
  readonly log: EventLog
  readonly store: LogStore
  readonly gateway: Gateway<Views>
  readonly url: string
  append(...events: readonly ResearchEvent[]): Promise<void>
  /** A token for everything. */
  token(): Promise<string>
}

/** Starts a gateway for one test. */
export async function served(
  options: Partial<GatewayOptions<Views>> & { readonly store?: LogStore } = {},
): Promise<Served> {
  const { store = memoryStore(), views = VIEWS, ...rest } = options
  const log = rest.log ?? (await openLog(store))
  const gateway = createGateway<Views>({ tokens: { secret: SECRET }, ...rest, views, log })
  const url = `${await serve(nodeListener(gateway))}/live`
  onTestFinished(async () => {
    await gateway.close()
    await log.close()
  })
  return {
    log,
    store,
    gateway,
    url,
    append: (...events) => append(store, events),
    token: () => gateway.grant({ sub: 'user', views: Object.keys(views), sources: ['*'] }),
  }
}

/** A gateway whose view `everything` is made by the test, in another open log of the same contents. */
export async function held(options: Partial<GatewayOptions<Views>> = {}) {
  const writer = memoryStore()
  const fence = await writer.claim('process:view:everything')
  const cursor = await writer.positionAt('start')
  let expect: string | null = null
  const commit = async (rows: Readonly<Record<string, unknown>>, reset = false) => {
    const state = Object.entries(rows).map(([key, row]) => ({
      key,
      state: row === null ? null : JSON.stringify(row),
    }))
    const process = { checkpoint: '{"version":1}', reset, state, timers: [] }
    await writer.commit(fence, { expect, cursor, acknowledged: [], process })
    expect = cursor
  }
  const whole = await served({ views: { everything }, ...options, store: writer.connect() })
  return {
    ...whole,
    /** Changes rows: null removes one. */
    set: (rows: Readonly<Record<string, unknown>>) => commit(rows),
    /** Begins a new generation with these rows. */
    rebuild: (rows: Readonly<Record<string, unknown>>) => commit(rows, true),
    /** Opens a stream of the gateway without a server, which goes on only as far as it is read. */
    stream: async (after?: string, model?: ClientModel) =>
      openStream(
        'http://localhost/live',
        await whole.token(),
        [{ view: 'everything', ...(after !== undefined && { after }) }],
        {
          fetcher: whole.gateway,
          ...(model !== undefined && { model }),
        },
      ),
  }
}

/** Resolves when a view has processed everything. */
export async function processed(store: LogStore, name = 'everything'): Promise<void> {
  while ((await store.reader(`process:view:${name}`))?.cursor !== (await store.positionAt('end')))
    await turn()
}

/** The rows of a view in its log, by key. */
export async function rowsOf(log: EventLog, name = 'everything'): Promise<Readonly<Record<string, unknown>>> {
  return Object.fromEntries((await log.state(`view:${name}`).snapshot()).state)
}
