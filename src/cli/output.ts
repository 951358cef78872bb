import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { outputFailure } from './exit.ts'
import { jsonText } from './json-text.ts'

/** How a piece of text is set off on a terminal. */
export type Style = Parameters<typeof styleText>[0]

/** Where a command prints its results. */
export interface Output {
  /** Whether results go to another program: as NDJSON, one JSON value a line. */
  readonly json: boolean
  /** Characters in a line. */
  readonly width: number
  /** Prints a line; resolves once it is written, not before its reader made room. Rejects when the reader is gone. */
  line(text?: string): Promise<void>
  /** Prints what to do next, for a person: only where the output is a terminal. */
  hint(text: string): Promise<void>
  /** Prints a value as one line of JSON; resolves and rejects likewise. */
  value(value: unknown): Promise<void>
  /** Sets text off, where the output is a terminal that shows colours and NO_COLOR is not set. */
  paint(style: Style, text: string): string
}

/** A longer line is hard to read, however wide the window; it is also the width of what is no terminal. */
const WIDEST = 120
/** In a narrower window lines are broken by the terminal. */
const NARROWEST = 60

/** Prints to a stream; `signal` ends the wait for a reader that is slow. Without one it is waited for. */
export function createOutput(
  stream: Writable & { readonly columns?: number; readonly isTTY?: boolean },
  { json, signal }: { readonly json: boolean; readonly signal?: AbortSignal },
): Output {
  async function write(text: string): Promise<void> {
    signal?.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const giveUp = () => reject(signal?.reason)
    signal?.addEventListener('abort', giveUp, { once: true })
    stream.write(text, (error) => {
      if (error) reject(outputFailure(error))
      else resolve()
    })
    await promise.finally(() => signal?.removeEventListener('abort', giveUp))
  }
  const paint = (style: Style, text: string) => styleText(style, text, { stream })
  return {
    json,
    width: Math.max(NARROWEST, Math.min(stream.columns || WIDEST, WIDEST)),
    line: (text = '') => write(`${text}\n`),
    async hint(text) {
      if (stream.isTTY === true && !json) await write(`${paint('dim', text)}\n`)
    },
    value: (value) => write(`${jsonText(value)}\n`),
    paint,
  }
}
