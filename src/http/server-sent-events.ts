/** Encoded events. Immutable, so that any number of clients can share it. */
export interface EventBatch {
  /** Number of events. */
  readonly count: number
  readonly bytes: Uint8Array
}

/** The end of an event as it is sent. It does not occur within one. */
export const FRAME_END = '\n\n'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** An empty batch. */
export const NO_EVENTS: EventBatch = { count: 0, bytes: new Uint8Array() }

/** Headers of a response with server-sent events. A proxy that compresses or buffers them would hold them back. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

/** An event as it is sent. No field may have a line break: JSON has none. */
export function sseFrame(fields: {
  readonly id?: string
  readonly event?: string
  readonly data: string
}): string {
  const { id, event, data } = fields
  const idLine = id === undefined ? '' : `id: ${id}\n`
  const eventLine = event === undefined ? '' : `event: ${event}\n`
  return `${idLine}${eventLine}data: ${data}${FRAME_END}`
}

/** Joins encoded events to a batch. */
export function batchOf(frames: readonly string[]): EventBatch {
  return frames.length === 0 ? NO_EVENTS : { count: frames.length, bytes: encoder.encode(frames.join('')) }
}

/** Splits a batch into encoded events. */
export function framesOf({ bytes }: EventBatch): string[] {
  const events = decoder.decode(bytes).split(FRAME_END)
  // The last element is the empty string after the last event.
  return events.slice(0, -1).map((event) => event + FRAME_END)
}

/** The first `count` events of a batch. */
export function firstOf(batch: EventBatch, count: number): EventBatch {
  return batchOf(framesOf(batch).slice(0, count))
}
