/** Encoded events. Immutable, so that any number of clients can share it. */
export interface EventBatch {
  /** Number of events. */
  readonly count: number
  readonly bytes: Buffer
}

/** The end of an event, which does not occur within one. */
const END = '\n\n'

/** An empty batch. */
export const NO_EVENTS: EventBatch = { count: 0, bytes: Buffer.alloc(0) }

/** Encodes an event. `data` is JSON, which has no line breaks. */
export function frame(id: string, type: string, data: string): string {
  return `id: ${id}\nevent: ${type}\ndata: ${data}${END}`
}

/** Joins encoded events to a batch. */
export function batchOf(frames: readonly string[]): EventBatch {
  return frames.length === 0 ? NO_EVENTS : { count: frames.length, bytes: Buffer.from(frames.join('')) }
}

/** Splits a batch into encoded events. */
export function framesOf({ bytes }: EventBatch): string[] {
  const events = bytes.toString().split(END)
  // The last element is the empty string after the last event.
  return events.slice(0, -1).map((event) => event + END)
}

/** The first `count` events of a batch. */
export function firstOf(batch: EventBatch, count: number): EventBatch {
  return batchOf(framesOf(batch).slice(0, count))
}
