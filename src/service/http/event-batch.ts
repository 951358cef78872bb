/** Events as they go out, one after the other. Any number of readers can be sent the same one, since it never changes. */
export interface EventBatch {
  /** How many there are. */
  readonly count: number
  readonly bytes: Buffer
}

/** What ends an event, and stands nowhere within one. */
const END = '\n\n'

/** A batch without any. */
export const NO_EVENTS: EventBatch = { count: 0, bytes: Buffer.alloc(0) }

/** One event as it stands on the wire. `data` is JSON, which has no line breaks of its own. */
export function frame(id: string, type: string, data: string): string {
  return `id: ${id}\nevent: ${type}\ndata: ${data}${END}`
}

/** Framed events, one after the other. */
export function batchOf(frames: readonly string[]): EventBatch {
  return frames.length === 0 ? NO_EVENTS : { count: frames.length, bytes: Buffer.from(frames.join('')) }
}

/** The events of a batch, each by itself. */
export function framesOf({ bytes }: EventBatch): string[] {
  const events = bytes.toString().split(END)
  // Nothing comes after the last one's end.
  return events.slice(0, -1).map((event) => event + END)
}

/** The first so many events of a batch. */
export function firstOf(batch: EventBatch, count: number): EventBatch {
  return batchOf(framesOf(batch).slice(0, count))
}
