import type { ResearchEvent } from 'rivulet'
import { view } from 'rivulet/gateway'
import { randomOf } from '../../../bench/random.ts'
import { change } from '../../operators/events.ts'

/** A cell of a list as the view has it. */
export interface Cell {
  /** The number of the last event that has set it. */
  readonly event: number
  /** Of the numbers of all events that have set it, in their order: it shows an event that is missing, repeated or out of order. */
  readonly digest: number
}

export const LISTS = ['l0', 'l1', 'l2', 'l3']

/** How many cells a list has. */
const CELLS = 400

/** The share of events that remove their cell. */
const REMOVALS = 0.1

/** What an event does to a cell. */
interface Step {
  readonly list: string
  readonly cell: string
  readonly event: number
  readonly removes: boolean
}

/** The steps of a run, the same for the same seed. */
function* stepsOf(events: number, seed: number): Generator<Step> {
  const random = randomOf(seed)
  for (let event = 1; event <= events; event++) {
    yield {
      list: LISTS[Math.floor(random() * LISTS.length)] ?? '',
      cell: `c ${Math.floor(random() * CELLS)}`,
      event,
      removes: random() < REMOVALS,
    }
  }
}

/** The events of a run. */
export function* eventsOf(events: number, seed: number): Generator<ResearchEvent> {
  for (const { list, cell, event, removes } of stepsOf(events, seed)) {
    yield change(`${event}/${removes ? 'remove' : 'set'}/${cell}`, list)
  }
}

function stepOf(list: string, id: string): Step {
  const [event = '', kind, cell = ''] = id.split('/')
  return { list, cell, event: Number(event), removes: kind === 'remove' }
}

function after(cell: Cell | undefined, { event, removes }: Step): Cell | null {
  return removes ? null : { event, digest: ((cell?.digest ?? 7) * 31 + event) % 1_000_000_007 }
}

/** What each cell is after these events, by list and cell. */
export function expectedCells(events: number, seed: number): Map<string, Cell> {
  const cells = new Map<string, Cell>()
  for (const step of stepsOf(events, seed)) {
    const key = `${step.list}/${step.cell}`
    const next = after(cells.get(key), step)
    if (next === null) cells.delete(key)
    else cells.set(key, next)
  }
  return cells
}

const cells = {
  version: 1,
  types: ['monitor.event_stream'],
  source: ([list]: readonly string[]) => `/v1/monitors/${list}`,
} as const

const LIST = '/v1/monitors/'.length

/** The cells of all lists, and those of one. */
export const views = {
  all: view({
    ...cells,
    key: ({ source, data }) => [source.slice(LIST), stepOf('', data.event_id).cell],
    reduce: (cell: Cell | undefined, { data }) => after(cell, stepOf('', data.event_id)),
  }),
  list: view({
    ...cells,
    params: ['list'],
    key: ({ source, data }) => [source.slice(LIST), stepOf('', data.event_id).cell],
    reduce: (cell: Cell | undefined, { data }) => after(cell, stepOf('', data.event_id)),
  }),
}
