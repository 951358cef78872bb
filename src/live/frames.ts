import { createParser } from 'eventsource-parser'
import type { LiveFrames } from '../protocol/live.ts'
import { isRecord } from './is-record.ts'
import { LiveError } from './live-error.ts'
import { untilAborted } from './until-aborted.ts'

/** A frame of a gateway with its kind. */
export type Frame = {
  [Kind in keyof LiveFrames]: { readonly kind: Kind } & LiveFrames[Kind]
}[keyof LiveFrames]

/** A frame about one view. */
export type ViewFrame = Extract<Frame, { readonly view: string }>

/** The longest frame, in characters. */
const MAX_FRAME = 16 * 1024 * 1024

type Fields = Readonly<Record<string, unknown>>

/** Reads the frames of a response's body until it ends. A frame that is malformed or too long is an error; one of unknown kind is skipped. */
export async function readFrames(
  body: ReadableStream<Uint8Array>,
  onFrame: (frame: Frame) => void,
  onBytes: () => void,
  signal: AbortSignal,
): Promise<void> {
  const parser = createParser({
    maxBufferSize: MAX_FRAME,
    onEvent: ({ event, data }) => {
      const frame = readFrame(event, data)
      if (frame !== undefined) onFrame(frame)
    },
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') throw malformed('a frame above 16 MB')
    },
  })
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await untilAborted(reader.read(), signal)
      if (done) return
      onBytes()
      parser.feed(decoder.decode(value, { stream: true }))
    }
  } finally {
    // The connection ends with its reader, whatever the gateway does.
    reader.cancel().catch(() => {})
  }
}

/** Undefined for a frame of unknown kind, which a later gateway may send. */
function readFrame(kind = 'message', data: string): Frame | undefined {
  if (!Object.hasOwn(CHECKS, kind)) return undefined
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch (cause) {
    throw malformed(`a malformed ${kind} frame`, cause)
  }
  const frame = { ...(isRecord(value) ? value : {}), kind }
  if (!isFrame(frame)) throw malformed(`a malformed ${kind} frame`)
  return frame
}

function malformed(what: string, cause?: unknown): LiveError {
  return new LiveError('protocol', `Received ${what}`, { cause })
}

const isText = (value: unknown) => typeof value === 'string'
const isTime = (value: unknown) => Number.isFinite(value)

function areRows(value: unknown): boolean {
  return Array.isArray(value) && value.every((row) => Array.isArray(row) && isText(row[0]) && row.length > 1)
}

/** What each frame must have. Fields that the client does not use are not checked. */
const CHECKS: Readonly<Record<keyof LiveFrames, (frame: Fields) => boolean>> = {
  open: ({ protocol, heartbeat }) => isTime(protocol) && isTime(heartbeat),
  snapshot: ({ view, rows, position }) =>
    isText(view) && areRows(rows) && (position === undefined || isText(position)),
  changes: ({ view, rows, position }) => isText(view) && areRows(rows) && isText(position),
  position: ({ view, position }) => isText(view) && isText(position),
  current: ({ view }) => isText(view),
  gap: ({ view, reason }) => isText(view) && isText(reason),
  denied: ({ view, problem }) => isText(view) && isRecord(problem),
  heartbeat: () => true,
  close: ({ reason }) => isText(reason),
}

function isKind(kind: unknown): kind is keyof LiveFrames {
  return typeof kind === 'string' && Object.hasOwn(CHECKS, kind)
}

function isFrame(frame: Fields): frame is Frame {
  return isKind(frame['kind']) && CHECKS[frame['kind']](frame)
}
