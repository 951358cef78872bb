/**
 * Opens idle streams of a server in a separate process, and sends the memory per stream: `quiet-reader.ts ours|floor {url}`, with the
 * library or with the floor.
 */
import { setImmediate } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { floorStream } from './floor.ts'

/** Bytes per open stream. */
export interface StreamSize {
  /** JavaScript's memory after a collection: the heap and external buffers. */
  readonly held: number
  /** The growth of the process, including sockets, garbage and unused memory. */
  readonly resident: number
}

const STREAMS = 2_000
/** Opened before the measurement, to compile code and allocate tables. */
const FIRST = 200
/** Opened concurrently: fewer than the server's backlog. */
const BATCH = 100

type Open = (group: string, next: () => void) => void

const [side, baseUrl = ''] = process.argv.slice(2)
process.once('disconnect', () => process.exit())
const open = side === 'ours' ? withClient() : onFloor
await openAll('first', FIRST)
const before = await settled()
await openAll('more', STREAMS)
const after = await settled()
const size: StreamSize = {
  held: (after.heapUsed + after.external - before.heapUsed - before.external) / STREAMS,
  resident: (after.rss - before.rss) / STREAMS,
}
process.send?.(size, () => process.disconnect())

function withClient(): Open {
  const client = createClient({ baseUrl, apiKey: 'none' })
  return (group, next) => {
    client.taskGroups.runs(group).subscribe({ next, error: failed, complete: failed })
  }
}

function onFloor(group: string, next: () => void): void {
  void floorStream(baseUrl, `/v1beta/tasks/groups/${group}/runs`, next).then(failed, failed)
}

/** Opens this many streams, and resolves when each has received its event. */
async function openAll(name: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += BATCH) {
    const batch = Array.from({ length: BATCH }, (_, at) => `${name}${from + at}`)
    await Promise.all(batch.map((group) => new Promise<void>((resolve) => open(group, resolve))))
  }
}

/** The memory after a collection. */
async function settled(): Promise<NodeJS.MemoryUsage> {
  for (let round = 0; round < 5; round++) {
    await setImmediate()
    globalThis.gc?.()
  }
  return process.memoryUsage()
}

function failed(reason?: unknown): never {
  throw new Error('an idle stream ended', { cause: reason })
}
