import type { CutPoint } from '../faults.ts'

/** What stands before the data of a framed event; JSON has no line breaks, so that it stands there once. */
const DATA = '\ndata: '
/** What ends an event. */
const END = '\n\n'

/** The event with the first half of its JSON for data, framed in good order. */
export function malformed(event: string): string {
  const start = event.indexOf(DATA) + DATA.length
  return event.slice(0, middle(start, event.length - END.length)) + END
}

/** How many of an event's bytes go out before it is cut at this point. */
export function cutLength(event: Buffer, at: CutPoint): number {
  // Every byte from here on begins a character of several bytes.
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
