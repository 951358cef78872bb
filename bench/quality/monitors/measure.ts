import { cp, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ManualClock } from 'rivulet/service'
import type { MonitorEvent } from 'rivulet'
import type { Measured, Miss } from '../report.ts'
import { type MeasuredService, serve } from '../service.ts'
import { applyChange, readChanges } from './change.ts'
import type { LabelledMonitor, Report } from './monitor.ts'
import { type GivenReport, monitorFigures, scoreMonitor } from './score.ts'

const DAYS = 30
/** In ms. */
const DAY = 24 * 60 * 60 * 1_000
/** When the month begins, Unix ms: an hour after midnight, so that the day of an event is that of the change. */
const START = Date.UTC(2026, 1, 28, 1)
/** How long all executions of one day may take, in ms of real time, and how often that is checked. */
const PATIENCE = 60_000
const CHECK = 10

/** Runs all monitors daily through the month of `changes.yaml` and compares their reports with the labels. */
export async function measureMonitors(items: readonly LabelledMonitor[]): Promise<Measured> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'rivulet-quality-'))
  try {
    await cp(new URL('folder', import.meta.url), folder, { recursive: true })
    const clock = new ManualClock(START)
    await using service = await serve({ docs: folder, clock })
    const ids = await Promise.all(items.map(({ query }) => create(service, query)))
    await executed(service, ids, START)
    const reports = items.map((): GivenReport[] => [])
    const reported = new Set<string>()
    for (let day = 1; day <= DAYS; day++) {
      for (const change of readChanges()) if (change.day === day) applyChange(folder, change)
      await service.settled()
      clock.advance(DAY)
      await executed(service, ids, START + day * DAY)
      for (const [index, id] of ids.entries()) {
        for (const event of await eventsOf(service, id)) {
          if (!('event_id' in event) || reported.has(event.event_id)) continue
          reported.add(event.event_id)
          if ('output' in event) reports[index]?.push(...reportsOf(event, day, folder))
        }
      }
    }
    const scored = items.map((monitor, index) => scoreMonitor({ monitor, reports: reports[index] ?? [] }))
    return { figures: monitorFigures(scored), misses: missesOf(items, scored) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function create(service: MeasuredService, query: string): Promise<string> {
  const { status, body } = await service.post('/v1/monitors', {
    type: 'event_stream',
    frequency: '1d',
    settings: { query },
  })
  const { monitor_id }: { monitor_id?: string } = Object(body)
  if (monitor_id === undefined) throw new Error(`${query}: ${status}: ${JSON.stringify(body)}`)
  return monitor_id
}

/** Resolves when each monitor has been executed at this time, in Unix ms, or later. */
async function executed(service: MeasuredService, ids: readonly string[], time: number): Promise<void> {
  const deadline = performance.now() + PATIENCE
  for (const id of ids) {
    for (;;) {
      const { body } = await service.get(`/v1/monitors/${id}`)
      const { last_run_at }: { last_run_at?: string | null } = Object(body)
      if (last_run_at != null && Date.parse(last_run_at) >= time) break
      if (performance.now() > deadline) throw new Error(`the monitor ${id} was not executed`)
      await setTimeout(CHECK)
    }
  }
}

/** The events of a monitor, of all pages. */
async function eventsOf(service: MeasuredService, id: string): Promise<readonly MonitorEvent[]> {
  const all: MonitorEvent[] = []
  let cursor: string | null | undefined
  do {
    const at = cursor == null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { status, body } = await service.get(`/v1/monitors/${id}/events?limit=100${at}`)
    const page: { events?: readonly MonitorEvent[]; next_cursor?: string | null } = Object(body)
    if (status !== 200 || page.events === undefined)
      throw new Error(`${id}: ${status}: ${JSON.stringify(body)}`)
    const failure = page.events.find((event) => 'error_message' in event)
    if (failure !== undefined) throw new Error(`${id}: ${failure.error_message}`)
    all.push(...page.events)
    cursor = page.next_cursor
  } while (cursor != null)
  return all
}

/** The report of an event: one for each cited document. */
function reportsOf(
  { output }: Extract<MonitorEvent, { readonly output: unknown }>,
  day: number,
  folder: string,
): GivenReport[] {
  const content = typeof output.content === 'string' ? output.content : JSON.stringify(output.content)
  const citations = output.basis.flatMap((entry) => entry.citations ?? [])
  return citations.map(({ url, excerpts }) => ({
    day,
    document: relative(folder, fileURLToPath(url)).replaceAll('\\', '/'),
    texts: [content, ...(excerpts ?? [])],
  }))
}

function missesOf(
  items: readonly LabelledMonitor[],
  scored: readonly ReturnType<typeof scoreMonitor>[],
): Miss[] {
  return items.flatMap(({ subject, query }, index) => {
    const { wrong = [], missing = [] } = scored[index] ?? {}
    const line = (what: string, { day, document }: Report): Miss => ({
      id: subject,
      detail: `${what}: ${query}: day ${day}, ${document}`,
    })
    return [
      ...wrong.map((report) => line('wrong', report)),
      ...missing.map((report) => line('missing', report)),
    ]
  })
}
