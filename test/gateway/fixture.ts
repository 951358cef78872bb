import { memoryLog, openLog } from 'rivulet'
import type { EventLog, LogStore, ResearchEvent } from 'rivulet'
import { createGateway, nodeListener, view } from 'rivulet/gateway'
import type { Gateway, GatewayOptions, Views } from 'rivulet/gateway'
import { onTestFinished } from 'vitest'
import { append } from '../log/append.ts'
import { change } from '../operators/events.ts'
import { serve } from '../support/serve.ts'

export const SECRET = 'a secret of thirty-two bytes or more'

/** What a test's view has of an item: its last value, and how often it was set. */
export interface Item {
  readonly value: string
  readonly times: number
}

let count = 0
/** An event that sets an item of a list: `list/item=value`, `list/item=` to remove it. */
export function setItem(list: string, item: string, value: string): ResearchEvent {
  count += 1
  return change(`${list}/${item}=${value}#${count}`, list)
}

/** The items that {@link setItem} sets: rows by list and item. The list is the source. */
export const items = view({
  version: 1,
  types: ['monitor.event_stream'],
  params: ['list'],
  key: ({ data }) => {
    const [, list = '', item = ''] = /^([^/]*)\/([^=]*)=/.exec(data.event_id) ?? []
    return item === '' ? [list] : [list, item]
  },
  reduce: (row: Item | undefined, { data }): Item | null => {
    const value = /=(.*)#\d+$/.exec(data.event_id)?.[1] ?? ''
    return value === '' ? null : { value, times: (row?.times ?? 0) + 1 }
  },
  source: ([list]) => `/v1/monitors/${list}`,
})

/** The same rows, followed all together. */
export const everything = view({
  version: 1,
  types: ['monitor.event_stream'],
  key: items.definition.key as never,
  reduce: items.definition.reduce as never,
  source: ([list]) => `/v1/monitors/${list}`,
})

export const views = { items, everything }

/** A gateway over a log, behind a server. */
export interface Served<V extends Views> {
  readonly log: EventLog
  readonly store: LogStore
  readonly gateway: Gateway<V>
  readonly url: string
  append(...events: readonly ResearchEvent[]): Promise<void>
  /** A token for everything. */
  token(): Promise<string>
}

/** Starts a gateway for one test. */
export async function served<const V extends Views = typeof views>(
  options: Partial<GatewayOptions<V>> & { readonly store?: LogStore } = {},
): Promise<Served<V>> {
  const { store = memoryLog(), ...rest } = options
  const log = rest.log ?? (await openLog(store))
  const gateway = createGateway<V>({
    views: views as unknown as V,
    tokens: { secret: SECRET },
    ...rest,
    log,
  })
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
    token: () => gateway.grant({ sub: 'user', views: Object.keys(options.views ?? views), sources: ['*'] }),
  }
}
