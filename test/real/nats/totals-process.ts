/** Runs a process over a log that counts the events of each source, and appends an event for each third one. It runs until it is killed. */
import { openLog } from 'rivulet/log'
import { natsStore } from '../../../src/log/nats/index.ts'

/** What it is started with. */
export interface TotalsSettings {
  readonly servers: string | readonly string[]
  readonly name: string
  readonly lease: number
  readonly owner: string
}

const settings: TotalsSettings = JSON.parse(process.argv[2] ?? '')
const { signal } = new AbortController()
for (;;) {
  const log = await openLog(natsStore(settings))
  const totals = log.process<number>('totals', {
    version: 1,
    key: ({ source, via }) => (via === 'process' ? undefined : source),
    init: () => 0,
    event: (count, _, context) => {
      context.set(count + 1)
      if (count % 3 === 2) context.append({ type: 'unknown', data: { of: context.key, count: count + 1 } })
    },
    wait: signal,
  })
  try {
    await totals.done
  } catch (error) {
    // Fenced after it was suspended, or the server was down: it waits for the name again.
    process.send?.({ ended: error instanceof Error ? error.name : String(error) })
  }
  await log.close()
}
