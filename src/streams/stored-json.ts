import { errorText } from '../protocol/error-text.ts'
import { notJson } from './not-json.ts'
import { RefusedEffect } from './refused-effect.ts'
import { utf8Length } from './sizes.ts'

/** A value that a function of a process gives to be kept, and its name in messages. */
const NAMES = { state: 'state', data: "timer's data" } as const

/** The JSON of a value to be kept. @throws {RefusedEffect} for a value that is not JSON, or is larger. */
export function storedJson(value: unknown, maxBytes: number, kind: keyof typeof NAMES): string {
  const json = jsonOf(value, kind)
  if (json.length * 3 <= maxBytes) return json
  const bytes = utf8Length(json)
  if (bytes <= maxBytes) return json
  throw new RefusedEffect(
    `its ${NAMES[kind]} of ${bytes} bytes is over the limit of ${maxBytes} (maxStateBytes)`,
  )
}

/** @throws {RefusedEffect} for a value that JSON does not give back as it is. */
export function jsonOf(value: unknown, kind: keyof typeof NAMES): string {
  let json: string | undefined
  let problem: string | undefined
  try {
    json = JSON.stringify(value)
  } catch (error) {
    problem = errorText(error)
  }
  try {
    // JSON.stringify has gone the same way, so this is not longer.
    problem = notJson(kind, value) ?? problem
  } catch (error) {
    problem ??= errorText(error)
  }
  if (json !== undefined && problem === undefined) return json
  throw new RefusedEffect(`its ${NAMES[kind]} is not JSON: ${problem ?? 'it has no text'}`)
}
