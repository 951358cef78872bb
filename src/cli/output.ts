import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { outputFailure } from './exit.ts'
import { jsonText } from './json-text.ts'
import { plain } from './plain.ts'

/** The style of text on a terminal. */
export type Style = Parameters<typeof styleText>[0]

/**
 * The stream to which a command prints its results. Texts are printed as {@link plain} text, with the styles that {@link Output.paint}
 * gives them.
 */
export interface Output {
  /** Whether results are printed as NDJSON, one JSON value per line. */
  readonly json: boolean
  /** The width of a line in characters. */
  readonly width: number
  /** Prints a line. Resolves when the reader has accepted it, and rejects when the reader has closed the output. */
  line(text?: string): Promise<void>
  /** Prints a part of a line. Resolves and rejects as `line` does. */
  text(text: string): Promise<void>
  /** Prints what to do next, only on a terminal. */
  hint(text: string): Promise<void>
  /** Prints a value as one line of JSON. Resolves and rejects as `line` does. */
  value(value: unknown): Promise<void>
  /** Styles text, on a terminal with colours and without NO_COLOR. */
  paint(style: Style, text: string): string
}

/** The widest line, also without a terminal. A longer one is hard to read. */
const WIDEST = 120
/** Minimum width, in columns: in a narrower window, the terminal wraps lines. */
const NARROWEST = 60

/** Prints to a stream. `signal` aborts waiting for a slow reader. */
export function createOutput(
  stream: Writable & { readonly columns?: number; readonly isTTY?: boolean },
  { json, signal }: { readonly json: boolean; readonly signal?: AbortSignal },
): Output {
  async function send(text: string): Promise<void> {
    signal?.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = () => reject(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    stream.write(text, (error) => {
      if (error) reject(outputFailure(error))
      else resolve()
    })
    await promise.finally(() => signal?.removeEventListener('abort', onAbort))
  }
  const write = (text: string) => send(styledOrPlain(text))
  const paint = (style: Style, text: string) => styleText(style, text, { stream })
  return {
    json,
    width: Math.max(NARROWEST, Math.min(stream.columns || WIDEST, WIDEST)),
    text: write,
    line: (text = '') => write(`${text}\n`),
    async hint(text) {
      if (stream.isTTY === true && !json) await write(`${paint('dim', text)}\n`)
    },
    value: (value) => send(`${jsonText(value)}\n`),
    paint,
  }
}

/** The weights and the colours of text that a command uses, and their ends. Others could hide a text. */
// oxlint-disable-next-line no-control-regex -- The output of `styleText` begins with it.
const STYLE = /(\u001B\[(?:0|1|2|22|3[1-69])m)/

/** A text with its styles, and otherwise plain. */
function styledOrPlain(text: string): string {
  return text
    .split(STYLE)
    .map((part, index) => (index % 2 === 1 ? part : plain(part)))
    .join('')
}

/** Prints a message for people on stderr. */
export function printMessage(text: string): void {
  process.stderr.write(`${plain(text)}\n`)
}
