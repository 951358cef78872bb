import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ended, messageOf } from '../child.ts'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately, median } from '../rounds.ts'
import { startServer } from '../server.ts'
import type { StreamSize } from '../quiet-reader.ts'

/**
 * Bytes of memory per stream, for 2,000 open streams of runs in one process, against 2,000 streams of the floor. Each stream has
 * sent one event of 400 B and is idle.
 *
 * Each side and round is a new process. 200 streams are opened first, to exclude shared memory. The figure is JavaScript's heap
 * and external buffers after a collection. The growth of the process, with sockets and garbage, is in the details.
 */
export const measure: Measure = async () => {
  await using server = await startServer('quiet')
  const resident: Record<'ours' | 'floor', number[]> = { ours: [], floor: [] }
  const side = (name: 'ours' | 'floor') => async () => {
    const size = await sizeOfStream(name, server.url)
    resident[name].push(size.resident)
    return size.held
  }
  const { ratio, ...details } = await alternately(side('ours'), side('floor'), { rounds: 7, warmUp: 0 })
  return [
    result(
      'idle-streams',
      ratio,
      { atMost: 1.25 },
      {
        ...details,
        oursResident: rounded(median(resident.ours)),
        theirsResident: rounded(median(resident.floor)),
        unit: 'bytes/stream',
      },
    ),
  ]
}

async function sizeOfStream(side: string, url: string): Promise<StreamSize> {
  const reader = fileURLToPath(new URL('../quiet-reader.ts', import.meta.url))
  const child = fork(reader, [side, url], { execArgv: ['--conditions=rivulet-source', '--expose-gc'] })
  const size = await messageOf(child, 'the reader', 'sent its size')
  await ended(child)
  if (!isStreamSize(size)) throw new Error('the reader sent something other than its size')
  return size
}

function isStreamSize(message: unknown): message is StreamSize {
  const { held, resident }: { readonly held?: unknown; readonly resident?: unknown } = Object(message)
  return typeof held === 'number' && typeof resident === 'number'
}
