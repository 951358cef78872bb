import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Reads a file with a JSON Schema, or another JSON object. */
export function jsonFile(path: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? `${error.message}.` : 'It cannot be read.')
  }
  if (!isJsonObject(value)) throw new InvalidArgumentError('The file must contain a JSON object.')
  return value
}
