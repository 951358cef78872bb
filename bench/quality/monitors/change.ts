import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** A change of `changes.yaml`. */
export interface Change {
  /** From 1. */
  readonly day: number
  /** The path of the document in the folder. */
  readonly document: string
  /** Text to add after a line, or at the end of the document. */
  readonly add?: string
  /** The line, without its indentation. */
  readonly after?: string
  /** A text to replace by `with`. */
  readonly replace?: string
  readonly with?: string
  /** Two texts that change places. */
  readonly swap?: readonly [string, string]
  /** Doubles the blank lines and the spaces between sentences. */
  readonly whitespace?: 'double'
  /** Writes the document again, without a change. */
  readonly rewrite?: 'same'
  /** The text of a new document. */
  readonly create?: string
}

/** Reads the changes of the month. */
export function readChanges(): readonly Change[] {
  return parse(readFileSync(new URL('changes.yaml', import.meta.url), 'utf8'))
}

/**
 * Applies a change to the documents of a folder.
 *
 * @throws Error if the document has not exactly one place to change.
 */
export function applyChange(folder: string, change: Change): void {
  const path = join(folder, change.document)
  if (change.create !== undefined) return writeFileSync(path, change.create, { flag: 'wx' })
  writeFileSync(path, changed(readFileSync(path, 'utf8'), change))
}

/** The text of a document after a change. */
function changed(text: string, change: Change): string {
  const { add, after, replace, swap, whitespace } = change
  if (add !== undefined) {
    if (after === undefined) return `${text.trimEnd()}\n${add}`
    const line = new RegExp(String.raw`^[ \t]*${escaped(after)}$`, 'm').exec(text)?.[0]
    if (line === undefined) throw new Error(`${change.document} has no line "${after}"`)
    const isHeading = after.startsWith('#')
    return replaced(text, `${line}\n`, `${line}\n${isHeading ? '\n' : ''}${add}`, change)
  }
  if (replace !== undefined) return replaced(text, replace, change.with ?? '', change)
  if (swap !== undefined) {
    const [one, other] = swap
    const mark = '\u0000'
    return replaced(replaced(replaced(text, one, mark, change), other, one, change), mark, other, change)
  }
  if (whitespace === 'double') return text.replaceAll('\n\n', '\n\n\n').replaceAll('. ', '.  ')
  return text
}

function replaced(text: string, old: string, replacement: string, { document, day }: Change): string {
  const parts = text.split(old)
  if (parts.length !== 2) throw new Error(`day ${day}: "${old}" is ${parts.length - 1} times in ${document}`)
  return parts.join(replacement)
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
}
