import type { Processes } from '../state/processes.ts'
import type { ProcessStore } from '../store/process-store.ts'
import type { OpenJournals } from './open-journals.ts'

/** Runs a call on the journals, once the log is open. */
type JournalsCall = <Result>(effect: (journals: OpenJournals) => Promise<Result>) => Promise<Result>

/** The states and the timers of processes, which their journals make. */
export function natsProcesses(call: JournalsCall): ProcessStore {
  const readIn = <Result>(
    { journals }: OpenJournals,
    name: string,
    effect: (processes: Processes) => Result,
  ) => journals.of(name).read((state) => effect(state.processes))
  const read = <Result>(name: string, effect: (processes: Processes) => Result) =>
    call((open) => readIn(open, name, effect))
  return {
    states(name, keys) {
      const wanted = [...keys]
      return read(name, (processes) => processes.states(name, wanted))
    },
    timers: (name, options) => read(name, (processes) => processes.timers(name, options)),
    keyTimers: (name, ...of) => read(name, (processes) => processes.keyTimers(name, ...of)),
    start: () => call(async (open) => open.processStart),
    end: (name) => read(name, (processes) => processes.end(name)),
    changes: (name, after, options) => read(name, (processes) => processes.changes(name, after, options)),
    range: (name, options) => read(name, (processes) => processes.range(name, options)),
    wait: (name, after, signal) =>
      call(async (open) => {
        const hasMore = () => readIn(open, name, (processes) => processes.hasMore(name, after) || undefined)
        await open.changes.until(name, hasMore, signal)
      }),
    pause: (fence) =>
      call(async ({ journals, claims }) => {
        await journals.of(fence.name).write((state) => {
          claims.checkIn(state, fence)
          const isKnown = state.processes.process(fence.name) !== undefined
          return isKnown ? { head: { pausedToken: fence.token } } : undefined
        })
      }),
  }
}
