/** Encoded events. Immutable, so that any number of clients can share it. */
export interface EventBatch {
  /** Number of events. */
  readonly count: number
  readonly bytes: Uint8Array
}

/** The end of an event, which does not occur within one. */
const END = '\n\n'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** An empty batch. */
export const NO_EVENTS: EventBatch = { count: 0, bytes: new Uint8Array() }

/** Encodes an event. `data` is JSON, which has no line breaks. */
export function frame(id: string, type: string, data: string): string {
  return `id: ${id}\nevent: ${type}\ndata: ${data}${END}`
}

/** Joins encoded events to a batch. */
export function batchOf(frames: readonly string[]): EventBatch {
  return frames.length === 0 ? NO_EVENTS : { count: frames.length, bytes: encoder.encode(frames.join('')) }
}

/** Splits a batch into encoded events. */
export function framesOf({ bytes }: EventBatch): string[] {
  const events = decoder.decode(bytes).split(END)
  // The last element is the empty string after the last event.
  return events.slice(0, -1).map((event) => event + END)
}

/** The first `count` events of a batch. */
export function firstOf(batch: EventBatch, count: number): EventBatch {
  return batchOf(framesOf(batch).slice(0, count))
}
