/**
 * Opens the silent streams of a server in a process of its own, and tells what each of them takes:
 * `quiet-reader.ts ours|floor {url}`, as the library opens them or as the floor does.
 */
import { setImmediate } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { floorStream } from './floor.ts'

/** Bytes that one open stream takes. */
export interface StreamSize {
  /** What JavaScript holds once its garbage is collected: on the heap, and in buffers outside of it. */
  readonly held: number
  /** What the whole process grew by, with the socket's native part, and with garbage and room not used again. */
  readonly resident: number
}

const STREAMS = 2_000
/** Opened before the measuring begins, so that code is compiled and tables are there. */
const FIRST = 200
/** Opened at once: less than the server's backlog. */
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

/** Opens so many streams, and resolves when the event of each has come. */
async function openAll(name: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += BATCH) {
    const batch = Array.from({ length: BATCH }, (_, at) => `${name}${from + at}`)
    await Promise.all(batch.map((group) => new Promise<void>((resolve) => open(group, resolve))))
  }
}

/** The memory once what is over has been let go. */
async function settled(): Promise<NodeJS.MemoryUsage> {
  for (let round = 0; round < 5; round++) {
    await setImmediate()
    globalThis.gc?.()
  }
  return process.memoryUsage()
}

function failed(reason?: unknown): never {
  throw new Error('a stream that was to stay open ended', { cause: reason })
}
