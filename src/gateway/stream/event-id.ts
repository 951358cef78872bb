import type { Position } from '../../log/store/contract.ts'
import { bytesOf } from '../feed/frames.ts'

/** The `id` of a server-sent event: the positions of all views, in the order in which the client has named them. */
export function eventId(positions: readonly (Position | undefined)[]): string {
  return positions.map((position) => encodeURIComponent(position ?? '')).join()
}

/** The positions of a `Last-Event-ID`; none if it has another number of positions. */
export function positionsOf(id: string, count: number): readonly (Position | undefined)[] {
  const parts = id.split(',')
  if (parts.length !== count) return []
  try {
    return parts.map((part) => (part === '' ? undefined : decodeURIComponent(part)))
  } catch {
    return []
  }
}

const NEWLINE = 10

/** Frames with an `id` in the last one. */
export function withId(frames: Uint8Array, id: string): Uint8Array {
  // A frame has two lines and an empty one.
  const second = frames.lastIndexOf(NEWLINE, frames.byteLength - 3)
  const start = second <= 0 ? 0 : frames.lastIndexOf(NEWLINE, second - 1) + 1
  const line = bytesOf(`id: ${id}\n`)
  const result = new Uint8Array(frames.byteLength + line.byteLength)
  result.set(frames.subarray(0, start))
  result.set(line, start)
  result.set(frames.subarray(start), start + line.byteLength)
  return result
}
