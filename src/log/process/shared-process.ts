import type { ResearchEventType } from '../../protocol/event.ts'
import { FencedError, LogClosedError } from '../errors.ts'
import { divideProcess } from './divide-process.ts'
import { PROCESS_PARTS } from './process-parts.ts'
import type { ProcessSettings } from './process.ts'
import { ProcessRunner } from './runner.ts'
import type { ProcessedLog } from './runner.ts'

/** A part that runs here. */
interface Running {
  readonly stopping: AbortController
  readonly done: Promise<void>
}

/**
 * Runs the parts of a process that this open log owns. Resolves when the process was stopped or its log closed, and rejects when a
 * part has failed. The names of the parts are released then.
 */
export async function runShared<State, Type extends ResearchEventType>(
  log: ProcessedLog,
  name: string,
  given: ProcessSettings<State, Type>,
  stop: AbortSignal,
): Promise<void> {
  const { store } = log
  const settings = { ...given, wait: given.wait ?? stop }
  const { count } = await store.sharing.partitions()
  // Not divided: one runs, and the others stand by.
  if (count === 1) return new ProcessRunner(log, name, settings, stop).run()
  const failing = new AbortController()
  const signal = AbortSignal.any([stop, failing.signal])
  const running = new Map<number, Running>()
  let failure: { readonly error: unknown } | undefined
  const fail = (error: unknown) => {
    const isEnd = signal.aborted && (error === signal.reason || error instanceof LogClosedError)
    if (!isEnd) failure ??= { error }
    failing.abort()
  }
  const run = (part: number, after: Promise<void> | undefined): Running => {
    const stopping = new AbortController()
    const own = AbortSignal.any([signal, stopping.signal])
    // Without a limit: the user's `wait` applies to a process of this name that is not shared.
    const waiting = { ...settings, wait: own }
    const start = () => new ProcessRunner(log, name, waiting, own, part).run()
    const done = Promise.resolve(after).then(() => inTurn(start, own))
    return { stopping, done: done.catch(fail) }
  }
  try {
    await inTurn(() => divideProcess(store, name, settings, AbortSignal.any([signal, settings.wait])), signal)
    for await (const own of store.sharing.share(`process:${name}`, PROCESS_PARTS, signal)) {
      for (let part = 0; part < PROCESS_PARTS; part++) {
        const known = running.get(part)
        if (!own.has(part)) known?.stopping.abort()
        else if (known?.stopping.signal.aborted !== false) running.set(part, run(part, known?.done))
      }
    }
  } catch (error) {
    fail(error)
  } finally {
    failing.abort()
    await Promise.all(Array.from(running.values(), ({ done }) => done))
  }
  if (failure !== undefined) throw failure.error
}

/** Starts the part. If another open log takes it over, for instance while this process is suspended, it waits for its turn and starts again. */
async function inTurn(start: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await start()
      return
    } catch (error) {
      if (!(error instanceof FencedError)) throw error
    }
  }
}
