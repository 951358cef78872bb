import { createParser } from 'eventsource-parser'
import { bodyText } from '../protocol/body-text.ts'
import { isObject } from '../protocol/json.ts'
import type { LiveFrames } from '../protocol/live.ts'
import { LiveError } from './live-error.ts'

/** A frame of a gateway with its kind. */
export type Frame = {
  [Kind in keyof LiveFrames]: { readonly kind: Kind } & LiveFrames[Kind]
}[keyof LiveFrames]

/** A frame about one view. */
export type ViewFrame = Extract<Frame, { readonly view: string }>

/** The longest frame, in characters. */
const MAX_FRAME = 16 * 1024 * 1024

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
  for await (const text of bodyText(body, signal)) {
    onBytes()
    parser.feed(text)
  }
}

/** Undefined for a frame of unknown kind, which a later gateway may send. */
function readFrame(kind = 'message', data: string): Frame | undefined {
  if (!isKind(kind)) return undefined
  let cause: unknown
  try {
    const value: unknown = JSON.parse(data)
    const frame = { ...(isObject(value) ? value : {}), kind }
    if (isFrame(frame)) return frame
  } catch (error) {
    cause = error
  }
  throw malformed(`a malformed ${kind} frame`, cause)
}

function malformed(what: string, cause?: unknown): LiveError {
  return new LiveError('protocol', `Received ${what}`, { cause })
}

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
const isTime: Check = (value) => Number.isFinite(value)
const orAbsent =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const areRows: Check = (value) =>
  Array.isArray(value) && value.every((row) => Array.isArray(row) && isText(row[0]) && row.length > 1)

/** The required fields of each frame. Fields that the client does not use are not checked. */
const FIELDS: Readonly<Record<Frame['kind'], Readonly<Record<string, Check>>>> = {
  open: { protocol: isTime, heartbeat: isTime },
  snapshot: { view: isText, rows: areRows, position: orAbsent(isText) },
  changes: { view: isText, rows: areRows, position: isText },
  position: { view: isText, position: isText },
  current: { view: isText },
  gap: { view: isText, reason: isText },
  denied: { view: isText, problem: isObject },
  heartbeat: { behind: orAbsent(isTime) },
  close: { reason: isText },
}

function isKind(kind: string): kind is Frame['kind'] {
  return Object.hasOwn(FIELDS, kind)
}

function isFrame(frame: { readonly kind: Frame['kind']; readonly [field: string]: unknown }): frame is Frame {
  return Object.entries(FIELDS[frame.kind]).every(([field, check]) => check(frame[field]))
}
