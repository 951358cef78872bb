import { openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import { connect, rowKey } from 'rivulet/live'
import type { LiveView } from 'rivulet/live'
import { sqliteStore } from 'rivulet/log/sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { scratchFile } from '../../log/sqlite/scratch.ts'
import { expectedCells } from './cells.ts'
import type { Cell, views } from './cells.ts'
import { KilledGateway, LimitedRecorder } from './processes.ts'
import { UnreliableProxy } from './unreliable-proxy.ts'

const SEED = 3
const EVENTS = 400

it('a gateway that is killed leaves its views to one that stands by, and browsers of both have each row', async () => {
  const file = scratchFile()
  await using log = await openLog(sqliteStore(file))
  const recorder = new LimitedRecorder(file, EVENTS, SEED)
  onTestFinished(() => recorder.kill())
  const first = await started(file)
  await using proxy = new UnreliableProxy(() => 0, 0)
  proxy.isReliable = true
  proxy.target = first.port
  let serving = first
  const behindProxy = followed(await proxy.listen(), () => serving.token())
  await recorder.record(EVENTS / 2)
  await until(behindProxy, (rows) => newest(rows) > EVENTS / 4)
  // From here on there are two, and the first one has the views.
  const standby = await started(file)
  const atStandby = followed(standby.port, () => standby.token())
  await until(atStandby, (rows) => newest(rows) > EVENTS / 4)
  const before = await viewOwners(log)

  recorder.limit(EVENTS)
  await first.kill()
  serving = standby
  proxy.target = standby.port
  const expected = expectedCells(EVENTS, SEED)
  const isWhole = (rows: ReadonlyMap<string, Cell>) =>
    rows.size === expected.size && newest(rows) === newest(expected)
  await Promise.all([until(behindProxy, isWhole), until(atStandby, isWhole)])

  expect(before).toEqual([first.pid, first.pid])
  expect(await viewOwners(log)).toEqual([standby.pid, standby.pid])
  expect(rowsOf(atStandby)).toEqual(keyed(expected))
  expect(rowsOf(behindProxy)).toEqual(keyed(expected))
  expect([atStandby, behindProxy].map((view) => view.getSnapshot().gaps)).toEqual([0, 0])
  expect(proxy.connections).toBeGreaterThan(1)
}, 60_000)

async function started(file: string): Promise<KilledGateway> {
  const gateway = await KilledGateway.start(file)
  onTestFinished(() => gateway.kill())
  return gateway
}

/** All cells, as a browser follows them. */
function followed(port: number, getToken: () => Promise<string>): LiveView<Cell> {
  const live = connect<typeof views>({ url: `http://127.0.0.1:${port}/live`, getToken, share: false })
  onTestFinished(() => live.close())
  return live.view('all')
}

/** Resolves once the rows of a view are as wanted. */
async function until(
  view: LiveView<Cell>,
  isWanted: (rows: ReadonlyMap<string, Cell>) => boolean,
): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = view.subscribe(({ rows }) => {
      if (isWanted(rows)) resolve()
    })
    onTestFinished(stop)
  })
}

function newest(cells: ReadonlyMap<string, Cell>): number {
  return Math.max(0, ...Array.from(cells.values(), ({ event }) => event))
}

function rowsOf(view: LiveView<Cell>): ReadonlyMap<string, Cell> {
  return view.getSnapshot().rows
}

function keyed(cells: ReadonlyMap<string, Cell>): ReadonlyMap<string, Cell> {
  return new Map(Array.from(cells, ([key, cell]) => [rowKey(key.split('/')), cell]))
}

/** The processes that make the views of the log. */
async function viewOwners(log: EventLog): Promise<number[]> {
  const { readers } = await log.stats()
  return readers.flatMap(({ name, owner }) =>
    name.startsWith('view:') ? [Number(/\d+/.exec(owner ?? '')?.[0])] : [],
  )
}
