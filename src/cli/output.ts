import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { styleText } from 'node:util'

/** How a piece of text is set off on a terminal. */
export type Style = Parameters<typeof styleText>[0]

/** Where a command prints its results. */
export interface Output {
  /** Whether results go to another program: as NDJSON, one JSON value a line. */
  readonly json: boolean
  /** Characters in a line. */
  readonly width: number
  /** Prints a line; resolves when there is room for the next. Rejects when the reader is gone. */
  line(text?: string): Promise<void>
  /** Prints a value as one line of JSON; resolves when there is room for the next. */
  value(value: unknown): Promise<void>
  /** Sets text off, where the output is a terminal that shows colours and NO_COLOR is not set. */
  paint(style: Style, text: string): string
}

/** A longer line is hard to read, however wide the window; it is also the width of what is no terminal. */
const WIDEST = 120
/** In a narrower window lines are broken by the terminal. */
const NARROWEST = 60

/** Prints to a stream; `signal` ends the wait for a reader that is slow. */
export function createOutput(
  stream: Writable & { readonly columns?: number },
  { json, signal }: { readonly json: boolean; readonly signal: AbortSignal },
): Output {
  async function write(text: string): Promise<void> {
    signal.throwIfAborted()
    if (stream.write(text)) return
    await once(stream, 'drain', { signal }).catch((error: unknown) => {
      throw signal.aborted ? signal.reason : error
    })
  }
  return {
    json,
    width: Math.max(NARROWEST, Math.min(stream.columns || WIDEST, WIDEST)),
    line: (text = '') => write(`${text}\n`),
    value: (value) => write(`${JSON.stringify(value)}\n`),
    paint: (style, text) => styleText(style, text, { stream }),
  }
}
