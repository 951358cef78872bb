import type { Archive, ArchivedEntry } from './archive.ts'
import { isCounted } from './facts.ts'

const SOURCE = '/processes/board'
const SILENCE = 250
const WINDOW = 2_000

interface Board {
  count: number
  last: number
}

interface Timer {
  readonly key: string
  readonly name: string
  readonly clock: 'event' | 'recorded'
  readonly due: number
}

/** What the process is to have after these entries. */
interface Expected {
  readonly states: ReadonlyMap<string, string>
  /** The data of its output as JSON, in order. */
  readonly output: readonly string[]
}

/**
 * Number of states and outputs of the process `board` that are not those of one run over the same entries without a kill. The run
 * is repeated here in the plainest way, without the library.
 */
export function divergenceOf(archive: Archive): number {
  const expected = expectedOf(archive.entries)
  const output = archive.entries
    .filter(({ source }) => source === SOURCE)
    .map(({ event }) => JSON.stringify(event.data))
  const states = archive.statesOf('process:board')
  const keys = new Set([...expected.states.keys(), ...states.keys()])
  const wrongStates = [...keys].filter((key) => expected.states.get(key) !== states.get(key)).length
  const length = Math.max(output.length, expected.output.length)
  const wrongOutput = Array.from({ length }, (_, n) => output[n] !== expected.output[n]).filter(
    Boolean,
  ).length
  return wrongStates + wrongOutput
}

function expectedOf(entries: readonly ArchivedEntry[]): Expected {
  const states = new Map<string, Board>()
  const timers = new Map<string, Timer>()
  const output: string[] = []
  let watermark = -Infinity
  for (const { source, id, type, recorded, event } of entries) {
    if (source === SOURCE) continue
    const time = event.time === null ? NaN : Date.parse(event.time)
    if (type === 'log.tick') watermark = Math.max(watermark, Math.min(throughOf(event.data), recorded))
    // Timers that the entry makes due fire before it.
    for (let timer = nextDue(timers, watermark, recorded); timer !== undefined;) {
      timers.delete(nameOf(timer))
      const { key, name, due } = timer
      const state = states.get(key) ?? { count: 0, last: 0 }
      output.push(JSON.stringify({ key, name, due, count: state.count }))
      states.set(key, { ...state, count: state.count + 1_000_000 })
      timer = nextDue(timers, watermark, recorded)
    }
    if (!isCounted(type)) continue
    const key = id.slice(-2)
    const state = states.get(key) ?? { count: 0, last: 0 }
    states.set(key, { count: state.count + 1, last: recorded })
    const silence = { key, name: 'silence', clock: 'recorded', due: recorded + SILENCE } as const
    timers.set(nameOf(silence), silence)
    if (Number.isNaN(time)) continue
    const window = { key, name: 'window', clock: 'event', due: time + WINDOW } as const
    timers.set(nameOf(window), window)
  }
  return { states: new Map(Array.from(states, ([key, state]) => [key, JSON.stringify(state)])), output }
}

/** The first timer that is due, by due time, key and name. */
function nextDue(timers: ReadonlyMap<string, Timer>, watermark: number, recorded: number): Timer | undefined {
  return [...timers.values()]
    .filter(({ clock, due }) => due <= (clock === 'event' ? watermark : recorded))
    .toSorted((a, b) => a.due - b.due || compare(a.key, b.key) || compare(a.name, b.name))[0]
}

/** Unix ms; -Infinity if the tick does not know it. */
function throughOf(data: unknown): number {
  const { through } = Object(data)
  return typeof through === 'string' ? Date.parse(through) : -Infinity
}

function nameOf({ key, name }: Timer): string {
  return `${key} ${name}`
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
