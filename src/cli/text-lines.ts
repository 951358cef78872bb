import { addAbortSignal } from 'node:stream'
import type { Readable } from 'node:stream'
import { UsageError } from './exit.ts'

/** Maximum size of a line, in bytes: the longest event has 16 Mi characters. */
const MAX_LINE = 32 * 1024 * 1024

const NEW_LINE = 10

/** A line of a text, without its end, and its number. Or what is wrong with it. */
export type TextLine =
  | { readonly number: number; readonly text: string }
  | { readonly number: number; readonly problem: string }

/**
 * Reads the lines of a text in UTF-8, as many at once as have come. More is read only when more is asked for, so an endless text takes no
 * more memory than a short one. It ends after a line of more than 32 MiB.
 *
 * @param name The text in errors.
 * @throws {UsageError} for what cannot be read.
 */
export async function* linesOf(
  input: Readable,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<readonly TextLine[], void> {
  let number = 1
  let parts: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of addAbortSignal(signal, input)) {
      const bytes = Buffer.from(chunk)
      const lines: TextLine[] = []
      for (let from = 0; from <= bytes.length;) {
        // Only the new part is searched, so a long line does not take quadratic time.
        const end = bytes.indexOf(NEW_LINE, from)
        const part = bytes.subarray(from, end === -1 ? bytes.length : end)
        parts.push(part)
        size += part.length
        if (size > MAX_LINE) {
          yield [...lines, { number, problem: `it has more than ${MAX_LINE} bytes` }]
          return
        }
        if (end === -1) break
        lines.push(lineOf(number, parts))
        number += 1
        parts = []
        size = 0
        from = end + 1
      }
      yield lines
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Error && 'code' in error) throw new UsageError(`${name}: ${error.message}`)
    throw error
  }
  yield [lineOf(number, parts)]
}

function lineOf(number: number, parts: readonly Buffer[]): TextLine {
  try {
    return { number, text: new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts)) }
  } catch {
    return { number, problem: 'it is not UTF-8' }
  }
}
