import type { RunInput } from 'rivulet'
import { isObject } from '../evidence/evidence.ts'
import { formats } from '../parts/format.ts'

/** The input of a run: a text, or an object with fields. */
export type Asked = RunInput['input']

/** The inputs of a text, or the problem with it, as a sentence. */
export type ReadInputs =
  | { readonly inputs: readonly Asked[]; readonly problem?: undefined }
  | { readonly inputs?: undefined; readonly problem: string }

/** The most runs of one request (§4.3). */
const MAX_RUNS = 1_000

/**
 * Reads the inputs of runs from a text. A text that is JSON as a whole is one object, or an array of texts and objects. In any other
 * text each line that is not empty is an input, and a line that begins with `{` or `[` is JSON.
 */
export function readInputs(text: string): ReadInputs {
  const trimmed = text.trim()
  if (trimmed === '') return { problem: 'Write at least one input.' }
  const whole = isJson(trimmed) ? parsed(trimmed) : undefined
  const read =
    whole !== undefined && 'value' in whole ? fromValue(whole.value) : fromLines(trimmed, whole?.error)
  if (read.inputs === undefined) return read
  if (read.inputs.length === 0) return { problem: 'The list has no inputs.' }
  if (read.inputs.length > MAX_RUNS) {
    return {
      problem: `These are ${formats.number(read.inputs.length)} inputs. At most ${formats.number(MAX_RUNS)} can be added at once.`,
    }
  }
  return read
}

function isJson(text: string): boolean {
  return text.startsWith('{') || text.startsWith('[')
}

function parsed(text: string): { readonly value: unknown } | { readonly error: string } {
  try {
    return { value: JSON.parse(text) }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

function fromValue(value: unknown): ReadInputs {
  if (!Array.isArray(value)) return isAsked(value) ? { inputs: [value] } : notAnInput('The input')
  const wrong = value.findIndex((each) => !isAsked(each))
  return wrong < 0 ? { inputs: value.filter(isAsked) } : notAnInput(`Input ${wrong + 1} of the list`)
}

/** @param error The problem with the text as one JSON value; undefined for a text that does not begin as one. */
function fromLines(text: string, error: string | undefined): ReadInputs {
  const lines = text.split('\n').map((line) => line.trim())
  const inputs: Asked[] = []
  for (const [index, line] of lines.entries()) {
    if (line === '') continue
    const read = isJson(line) ? parsed(line) : { value: line }
    if ('error' in read) {
      // JSON over several lines, with a mistake in it.
      const isWhole = index === 0 && error !== undefined
      return {
        problem: isWhole ? `This is not JSON: ${error}.` : `Line ${index + 1} is not JSON: ${read.error}.`,
      }
    }
    if (!isAsked(read.value)) return notAnInput(`Line ${index + 1}`)
    inputs.push(read.value)
  }
  return { inputs }
}

function notAnInput(what: string): ReadInputs {
  return { problem: `${what} must be a text that is not empty, or an object.` }
}

function isAsked(value: unknown): value is Asked {
  return isObject(value) || (typeof value === 'string' && value.trim() !== '')
}
