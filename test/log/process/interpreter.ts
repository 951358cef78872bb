import type { ResearchEvent } from 'rivulet'
import type { Entry } from 'rivulet/log'
import type { ProcessContext } from 'rivulet/streams'

/** A state, as the process under test has it. */
export interface Tally {
  readonly seen: number
  readonly trace: number
}

type Clock = 'event' | 'recorded'

interface PlainTimer {
  readonly key: string
  readonly name: string
  readonly clock: Clock
  readonly due: number
  readonly data: unknown
  readonly cause: {
    readonly source: string
    readonly id: string
    readonly revision: number
    readonly hops: number
  }
}

/** What a run has left. */
export interface Outcome {
  /** In the order of the last change. */
  readonly state: readonly (readonly [string, Tally])[]
  /** Each output: what caused it, and its data. */
  readonly output: readonly string[]
}

export interface PlainProcess {
  readonly key: (entry: Entry) => string | readonly string[] | undefined
  readonly event: (state: Tally, entry: Entry, context: ProcessContext<Tally>) => void
  readonly timer: (
    state: Tally,
    due: number,
    context: ProcessContext<Tally>,
    name: string,
    data: unknown,
  ) => void
  readonly lateness: number
  readonly timeToLive: number | undefined
}

/** An output as text: the parts that must be the same in each run. */
export const outputText = ({ type, time, data, cause, source }: ResearchEvent) =>
  JSON.stringify([source, type, time, data, cause])

/** Runs a process over entries once, in the most obvious way. Shares no code with the engine. */
export function interpret(entries: readonly Entry[], name: string, process: PlainProcess): Outcome {
  const state = new Map<string, Tally>()
  const output: string[] = []
  let timers: PlainTimer[] = []
  let watermark = -Infinity
  let isComplete = true
  /** The sources that are behind. */
  const holds = new Map<string, { readonly through: number; readonly until: number }>()
  const holdsFor = (key: string, source: string) => [holds.get(source) ?? [], holds.get(key) ?? []].flat()
  const run = (
    key: string,
    cause: PlainTimer['cause'] & { readonly timer?: string; readonly due?: number },
    time: string | null,
    recorded: number,
    callback: (state: Tally, context: ProcessContext<Tally>) => void,
  ) => {
    const { hops, timer, due, ...origin } = cause
    const own = holdsFor(key, cause.source)
    const reached = own.flatMap(({ through, until }) => (recorded < until ? [through] : []))
    const setTimer = (timerName: string, timerDue: number, clock: Clock, data?: unknown) => {
      timers = timers.filter((each) => each.key !== key || each.name !== timerName)
      timers.push({ key, name: timerName, clock, due: timerDue, data, cause: { ...origin, hops } })
    }
    callback(structuredClone(state.get(key)) ?? { seen: 0, trace: 0 }, {
      key,
      complete: isComplete && own.every(({ until }) => recorded < until),
      now: (clock) => (clock === 'event' ? Math.min(watermark, ...reached) - process.lateness : recorded),
      set(value) {
        const isSame = JSON.stringify(value ?? undefined) === JSON.stringify(state.get(key))
        if (!isSame) state.delete(key)
        if (!isSame && value !== null) state.set(key, value)
        timers = timers.filter((each) => each.key !== key || each.name !== '')
        if (value !== null && process.timeToLive !== undefined)
          setTimer('', recorded + process.timeToLive, 'recorded')
      },
      timer: (timerName, timerDue, options) =>
        setTimer(
          timerName,
          Math.ceil(timerDue),
          options?.clock ?? 'recorded',
          structuredClone(options?.data),
        ),
      cancel: (timerName) => {
        timers = timers.filter((each) => each.key !== key || each.name !== timerName)
      },
      append: ({ type, data, source = `/processes/${name}` }) => {
        const made = {
          process: name,
          ...origin,
          ...(timer !== undefined && { timer, due }),
          hops,
        }
        output.push(JSON.stringify([source, type, time, data, made]))
      },
    })
  }
  for (const entry of entries) {
    if (entry.cause?.process === name) continue
    const { source, id, revision, recorded } = entry
    if (entry.type === 'log.tick') {
      watermark = Math.max(watermark, Math.min(Date.parse(entry.data.through ?? '1970-01-01'), recorded))
      isComplete = entry.data.complete
    }
    if (entry.type === 'source.behind') {
      const { through, until } = entry.data
      holds.set(source, {
        through: through === null ? watermark : Math.max(watermark, Date.parse(through)),
        until: until === null ? Infinity : Date.parse(until),
      })
    } else if (entry.type === 'source.caught_up') holds.delete(source)
    const waits = (timer: PlainTimer) =>
      timer.clock === 'event' &&
      holdsFor(timer.key, timer.cause.source).some(
        ({ through, until }) => recorded < until && timer.due > through - process.lateness,
      )
    for (;;) {
      const due = timers
        .filter((each) => each.due <= (each.clock === 'event' ? watermark - process.lateness : recorded))
        .toSorted(
          (a, b) =>
            a.due - b.due || (a.key < b.key ? -1 : 1) * Number(a.key !== b.key) || (a.name < b.name ? -1 : 1),
        )
      const first = due.find(
        (each, at) =>
          each.clock === 'recorded' ||
          !due.slice(0, at + 1).some((earlier) => earlier.key === each.key && waits(earlier)),
      )
      if (first === undefined) break
      timers = timers.filter((each) => each !== first)
      const cause = { ...first.cause, timer: first.name, due: first.due }
      run(first.key, cause, new Date(first.due).toISOString(), recorded, (value, context) =>
        first.name === ''
          ? context.set(null)
          : process.timer(value, first.due, context, first.name, first.data),
      )
    }
    const keys = [process.key(entry) ?? []].flat()
    const cause = { source, id, revision, hops: (entry.cause?.hops ?? 0) + 1 }
    for (const key of new Set(keys.toSorted())) {
      run(key, cause, entry.time, recorded, (value, context) => process.event(value, entry, context))
    }
  }
  return { state: [...state], output }
}
