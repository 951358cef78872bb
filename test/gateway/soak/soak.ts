import { isDeepStrictEqual } from 'node:util'
import { openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import { connect, rowKey } from 'rivulet/live'
import type { LiveView } from 'rivulet/live'
import { sqliteStore } from 'rivulet/log/sqlite'
import { randomOf } from '../../../bench/random.ts'
import { expectedCells, LISTS } from './cells.ts'
import type { Cell, views } from './cells.ts'
import { KilledGateway, LimitedRecorder, until } from './processes.ts'
import { UnreliableProxy } from './unreliable-proxy.ts'

/** How many events are recorded until the browser has to have got one of them. */
const SLICE = 25

export interface GatewaySoakOptions {
  /** Of the log. It does not exist yet. */
  readonly file: string
  readonly events: number
  readonly kills: number
  readonly seed: number
  /** After how many bytes a connection is cut or stalls, on average. Default 20,000. */
  readonly bytes?: number
  /** How many entries retention keeps. Default: all of them. */
  readonly keep?: number
  /** Whether retention does not wait for the views. Default: it does. */
  readonly overtakes?: boolean
  readonly onStep?: (text: string) => void
}

/** What a soak has shown. */
export interface GatewaySoakResult {
  readonly events: number
  readonly seed: number
  /** Kills of the gateway by SIGKILL, each of one that the browser had got rows from. */
  readonly kills: number
  readonly connections: number
  readonly cuts: number
  readonly stalls: number
  /** How many entries retention has deleted. */
  readonly deleted: number
  /** How often views have missed entries. Without that, their rows are exactly what the events say. */
  readonly missed: number
  /** Views in the browser that have not reported that they missed entries, although they have, or the other way round. */
  readonly silent: number
  /** How often the rows of the browser's views have changed. */
  readonly notifications: number
  readonly rows: number
  /** Rows of the log's view that are not what the events say. */
  readonly wrong_in_log: number
  /** Rows of the browser that are not those of the log, of all views. */
  readonly wrong_in_browser: number
  /** How often a cell in the browser was set by an earlier event than before. */
  readonly backwards: number
  readonly ms: number
}

/** Kills a gateway while a recorder appends and a browser's store follows over an unreliable network, and compares them in the end. */
export async function soakGateway(options: GatewaySoakOptions): Promise<GatewaySoakResult> {
  const { file, events, kills, seed, bytes = 20_000, keep, overtakes = false, onStep = () => {} } = options
  const began = performance.now()
  const random = randomOf(seed)
  await using proxy = new UnreliableProxy(random, bytes)
  const port = await proxy.listen()
  // It is there before the first process opens it.
  await using log = await openLog(sqliteStore(file))
  const recorder = new LimitedRecorder(file, events, seed, keep)
  let gateway = await KilledGateway.start(file, !overtakes)
  proxy.target = gateway.port
  try {
    const getToken = () => gateway.token()
    using live = connect<typeof views>({ url: `http://127.0.0.1:${port}/live`, getToken, share: false })
    const followed = [live.view('all'), ...LISTS.map((list) => live.view('list', { list }))]
    const watches = followed.map(watch)
    const newest = () => watches[0]?.newest() ?? 0

    for (let kill = 1; kill <= kills; kill++) {
      // In the middle of what is recorded meanwhile, while the browser gets rows.
      const target = Math.ceil((events * (kill - random() / 2)) / (kills + 1))
      for (let at = recorder.appended; at < target; at = recorder.appended) {
        await recorder.record(Math.min(at + SLICE, target))
        if (recorder.appended < target) await until(() => newest() > at)
      }
      recorder.limit(target + SLICE)
      await gateway.kill()
      // More than what retention keeps: it waits for the views, or they miss something.
      if (keep !== undefined) await recorder.record(Math.min(target + 3 * keep, events))
      gateway = await KilledGateway.start(file, !overtakes)
      proxy.target = gateway.port
      onStep(
        `kill ${kill}: ${recorder.appended} events, ${proxy.connections} connections, ${proxy.cuts} cuts, ${proxy.stalls} stalls`,
      )
    }
    await recorder.record(events)
    proxy.isReliable = true

    const expected = expectedCells(events, seed)
    let all = await viewIn(log, 'all')
    let list = await viewIn(log, 'list')
    await until(async () => {
      all = await viewIn(log, 'all')
      list = await viewIn(log, 'list')
      return all.isWhole && list.isWhole
    })
    const wrongInBrowser = () =>
      followed.reduce(
        (sum, view, at) =>
          sum + wrong(cellsOf(view), at === 0 ? all.cells : ofList(list.cells, LISTS[at - 1])),
        0,
      )
    const isSilent = (view: LiveView<Cell>, at: number) =>
      view.getSnapshot().gaps > 0 !== (at === 0 ? all : list).missed > 0
    await until(() => wrongInBrowser() === 0)
    return {
      events,
      seed,
      kills,
      connections: proxy.connections,
      cuts: proxy.cuts,
      stalls: proxy.stalls,
      deleted: recorder.deleted,
      missed: all.missed + list.missed,
      silent: followed.filter(isSilent).length,
      notifications: watches.reduce((sum, { changes }) => sum + changes(), 0),
      rows: expected.size,
      wrong_in_log: [all, list].reduce(
        (sum, { missed, cells }) => sum + (missed > 0 ? 0 : wrong(cells, keyed(expected))),
        0,
      ),
      wrong_in_browser: wrongInBrowser(),
      backwards: watches.reduce((sum, { backwards }) => sum + backwards(), 0),
      ms: Math.round(performance.now() - began),
    }
  } finally {
    await gateway.kill()
    recorder.kill()
  }
}

/** Why a soak has failed, or has shown too little. */
export function complaintsAbout(soaked: GatewaySoakResult): string[] {
  return [
    ...(soaked.wrong_in_log > 0 ? [`${soaked.wrong_in_log} rows of the log's view are wrong`] : []),
    ...(soaked.wrong_in_browser > 0
      ? [`${soaked.wrong_in_browser} rows of the browser are not those of the log`]
      : []),
    ...(soaked.backwards > 0 ? [`${soaked.backwards} rows went back in the browser`] : []),
    ...(soaked.silent > 0
      ? [`${soaked.silent} views of the browser do not say whether they have missed entries`]
      : []),
    ...(soaked.rows === 0 ? ['there were no rows'] : []),
    ...(soaked.cuts === 0 ? ['no connection was cut'] : []),
    ...(soaked.stalls === 0 ? ['no connection has stalled'] : []),
  ]
}

/** A view as the log has it: its cells, how often it has missed entries, and whether it has processed all that there is. */
async function viewIn(log: EventLog, view: 'all' | 'list') {
  const { readers } = await log.stats()
  const isWhole = readers.some(({ name, lag }) => name === `view:${view}` && lag.entries === 0)
  const { state } = await log.state<Cell | { readonly gaps: number }>(`view:${view}`).snapshot()
  const cells = new Map<string, Cell>()
  let missed = 0
  for (const [key, value] of state) {
    if ('gaps' in value) missed = value.gaps
    else cells.set(key, value)
  }
  return { cells, missed, isWhole }
}

/** Follows a view, and sees that no cell goes back. */
function watch(view: LiveView<Cell>) {
  let changes = 0
  let backwards = 0
  let newest = 0
  let before: ReadonlyMap<string, Cell> = new Map()
  view.subscribe(({ rows }) => {
    if (rows === before) return
    changes += 1
    for (const { event } of rows.values()) newest = Math.max(newest, event)
    for (const [key, { event }] of rows) if (event < (before.get(key)?.event ?? 0)) backwards += 1
    before = rows
  })
  return { changes: () => changes, newest: () => newest, backwards: () => backwards }
}

function cellsOf(view: LiveView<Cell>): ReadonlyMap<string, Cell> {
  return view.getSnapshot().rows
}

function keyed(cells: ReadonlyMap<string, Cell>): Map<string, Cell> {
  return new Map(Array.from(cells, ([key, cell]) => [rowKey(key.split('/')), cell]))
}

function ofList(cells: ReadonlyMap<string, Cell>, list = ''): Map<string, Cell> {
  return new Map([...cells].filter(([key]) => key.startsWith(`${list}/`)))
}

/** How many keys have not the same cell in both. */
function wrong(a: ReadonlyMap<string, Cell>, b: ReadonlyMap<string, Cell>): number {
  return [...new Set([...a.keys(), ...b.keys()])].filter((key) => !isDeepStrictEqual(a.get(key), b.get(key)))
    .length
}
