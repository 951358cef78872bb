import { sseFrame } from '../../http/server-sent-events.ts'
import type { LiveFrames } from '../../protocol/live.ts'

const encoder = new TextEncoder()

/** A frame as text. */
export function frameText<Name extends keyof LiveFrames>(name: Name, data: LiveFrames[Name]): string {
  return frameOf(name, JSON.stringify(data))
}

/** A frame of this JSON, which has no line breaks. */
export function frameOf(name: keyof LiveFrames, json: string): string {
  return sseFrame({ event: name, data: json })
}

/** Frames as they are sent. */
export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text)
}
