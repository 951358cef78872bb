import { FRAME_END } from '../../http/server-sent-events.ts'
import type { CutPoint } from './faults.ts'

/** The start of the data of a framed event. Its first occurrence, since no id and no type contains it. */
const DATA = 'data: '

/** The event with only the first half of its JSON, framed correctly. */
export function malformed(event: string): string {
  const start = event.indexOf(DATA) + DATA.length
  return event.slice(0, middle(start, event.length - FRAME_END.length)) + FRAME_END
}

/** The number of bytes of an event that are sent before the cut. */
export function cutLength(event: Buffer, at: CutPoint): number {
  // Bytes of at least 0xc0 start a multi-byte character.
  const character = at === 'character' ? event.findIndex((byte) => byte >= 0xc0) : -1
  if (character !== -1) return character + 1
  let end = middle(event.indexOf(DATA) + DATA.length, event.length)
  while (isWithinCharacter(event[end])) end -= 1
  return end
}

function middle(start: number, end: number): number {
  return Math.floor((start + end) / 2)
}

function isWithinCharacter(byte = 0): boolean {
  return (byte & 0xc0) === 0x80
}
