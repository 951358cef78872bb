import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { RunInput } from 'rivulet'
import { UsageError } from './exit.ts'
import { isJsonObject } from './json-file.ts'

/** The used part of standard input. */
export type StandardInput = NodeJS.ReadableStream & { readonly isTTY?: boolean }

/** The options from which the inputs of runs are read. */
export interface InputOptions {
  readonly input?: readonly string[]
  /** `-` is standard input. */
  readonly file?: string
  readonly processor: string
}

/**
 * The inputs of a command line: first from `--input`, then from `--file`. Without either, they are read from standard
 * input, unless that is a terminal.
 *
 * @throws UsageError if there are none, and for a malformed line.
 */
export async function runInputs(
  { input: texts = [], file, processor }: InputOptions,
  stdin: StandardInput = process.stdin,
): Promise<RunInput[]> {
  const named = texts.map((input): RunInput => ({ input, processor }))
  if (file === undefined && named.length > 0) return named
  if (file === undefined && stdin.isTTY === true) {
    throw new UsageError('no inputs: give them with --input or --file, or on standard input')
  }
  const isStdin = file === undefined || file === '-'
  const lines = isStdin ? await text(stdin) : await readLines(file)
  const inputs = [...named, ...parseInputs(lines, isStdin ? 'standard input' : file, processor)]
  if (inputs.length === 0) throw new UsageError('there are no inputs')
  return inputs
}

async function readLines(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new UsageError(
      `the inputs cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

/** Parses each line as a JSON string, or as an object of the interface: `{"input": …, "processor": …}` (§2.8). */
function parseInputs(lines: string, name: string, processor: string): RunInput[] {
  return lines.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    const value = parseJson(line)
    if (typeof value === 'string') return [{ input: value, processor }]
    if (isRunInput(value)) return [{ processor, ...value }]
    const expected = 'a JSON string, or an object whose "input" is a string or an object'
    throw new UsageError(`${name}, line ${index + 1}: expected ${expected}`)
  })
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** The client checks the other fields. */
function isRunInput(value: unknown): value is RunInput {
  return isJsonObject(value) && (typeof value['input'] === 'string' || isJsonObject(value['input']))
}
