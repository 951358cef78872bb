import { createClient } from 'rivulet'
import { dedupe } from 'rivulet/operators'
import { lastValueFrom, tap } from 'rxjs'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { floorStream } from '../floor.ts'
import { alternately, quantile } from '../rounds.ts'
import { startServer } from '../server.ts'

const EVENTS = 10_000
const GROUP = `${EVENTS}x400`

const SHARES = [
  { name: 'latency-p50', share: 0.5, atMost: 1.1 },
  { name: 'latency-p99', share: 0.99, atMost: 1.5 },
]

/** Reads the stream once, and resolves after its last event. */
type Read = (next: (wire: unknown) => void) => Promise<unknown>

/**
 * From the server's write of an event to the subscriber's `next`, as a typed event with `dedupe`, against the floor: p50 and p99 of
 * 10,000 events of 400 B. The server writes an event after the previous one was received, so that none is queued.
 *
 * The server puts the time into the event right before the write, and the reader compares it first in `next`. Both use the
 * machine's monotonic clock, so the figure includes the kernel's transfer.
 */
export const measure: Measure = async () => {
  await using server = await startServer('metronome')
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const ours: Read = (next) =>
    lastValueFrom(
      client.taskGroups.runs(GROUP).pipe(
        dedupe(),
        tap(({ data }) => next(data)),
      ),
    )
  const floor: Read = (next) => floorStream(server.url, `/v1beta/tasks/groups/${GROUP}/runs`, next)
  /** The latency of each event, in µs. */
  const latencies = async (read: Read) => {
    const times: number[] = []
    await read((wire) => {
      const now = process.hrtime.bigint()
      times.push(Number(now - writtenAt(wire)) / 1_000)
      if (times.length < EVENTS) server.process.send('next')
    })
    expectCount(times.length, EVENTS)
    return times
  }

  const results = []
  for (const { name, share, atMost } of SHARES) {
    const side = (read: Read) => async () => quantile(await latencies(read), share)
    const { ratio, ...details } = await alternately(side(ours), side(floor))
    results.push(result(name, ratio, { atMost }, { ...details, unit: 'µs' }))
  }
  return results
}

/** The time at which the event was written, in ns. */
function writtenAt(wire: unknown): bigint {
  const { run }: { readonly run?: { readonly metadata?: { readonly written?: unknown } } } = Object(wire)
  const written = run?.metadata?.written
  if (typeof written !== 'string') throw new Error('an event does not have the time of its write')
  return BigInt(written)
}
