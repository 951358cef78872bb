import { setImmediate as turn } from 'node:timers/promises'
import type { ResearchEvent } from 'rivulet'
import type { EventLog } from 'rivulet/log'

/** Events that arrive together: a page, or a chunk of a stream. */
const PAGE = 20

/**
 * Records events as `log.record` does: a stream for each source, each event with its position, paused while the log is behind.
 * The streams are open before.
 */
export async function opened(log: EventLog, sources: readonly string[]) {
  let failure: { readonly error: unknown } | undefined
  const recorder = log.recorder((error) => (failure = { error }))
  const streams = new Map(
    await Promise.all(sources.map(async (source) => [source, await recorder.open(source)] as const)),
  )
  return {
    async record(events: readonly ResearchEvent[]): Promise<void> {
      for (let at = 0; at < events.length; at += PAGE) {
        for (const event of events.slice(at, at + PAGE)) {
          streams.get(event.source)?.add(event, { text: () => event.id })
        }
        await turn()
        if (recorder.gate.closed) await gateOpens(recorder.gate)
      }
      await recorder.flushed()
      if (failure !== undefined) throw failure.error
    },
    close: () => recorder.close(),
  }
}

function gateOpens(gate: { onChange(listener: () => void): () => void }): Promise<void> {
  return new Promise((resolve) => {
    const stop = gate.onChange(() => {
      stop()
      resolve()
    })
  })
}
