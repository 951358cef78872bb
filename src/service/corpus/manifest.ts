import { isObject } from '../../protocol/event.ts'
import type { ParsedText } from './parsed-text.ts'

/** Maximum length of a manifest, in characters. A longer one is no document. */
const MAX_MANIFEST_LENGTH = 256 * 1_024
/** Maximum length of a field's value, in characters. A longer one is left out. */
const MAX_VALUE_LENGTH = 2_000

/**
 * Parses a `package.json`: its title is the package's name, its text has a line for each field that describes the package, such as
 * `license: MIT`, with the value word for word. Returns undefined unless it is an object with a name and another of these fields.
 */
export function parseManifest(source: string): ParsedText | undefined {
  if (source.length > MAX_MANIFEST_LENGTH) return undefined
  const manifest = parseJson(source)
  if (!isObject(manifest)) return undefined
  const name = lineOf(manifest['name'])
  if (name === undefined) return undefined
  const fields: Readonly<Record<string, string | undefined>> = {
    version: lineOf(manifest['version']),
    description: lineOf(manifest['description']),
    keywords: listOf(manifest['keywords']),
    // npm's old forms of licences: an object, and a list of objects.
    license:
      lineOf(manifest['license']) ?? part(manifest['license'], 'type') ?? licences(manifest['licenses']),
    author: person(manifest['author']),
    homepage: lineOf(manifest['homepage']),
    repository: lineOf(manifest['repository']) ?? part(manifest['repository'], 'url'),
    'engines.node': part(manifest['engines'], 'node'),
  }
  const lines = Object.entries(fields).flatMap(([field, value]) =>
    value === undefined ? [] : [`${field}: ${value}`],
  )
  // Some folders of a package have a manifest with a name only, which selects a module format.
  if (lines.length === 0) return undefined
  return { title: name, text: [`name: ${name}`, ...lines].join('\n') }
}

function parseJson(source: string): unknown {
  try {
    return JSON.parse(source)
  } catch {
    return undefined
  }
}

/** A text on one line; undefined if it is not a text, blank or too long. */
function lineOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_VALUE_LENGTH) return undefined
  // oxlint-disable-next-line no-control-regex -- JSON can contain them.
  const line = value.replace(/[\s\u0000-\u001F\u007F]+/g, ' ').trim()
  return line === '' ? undefined : line.toWellFormed()
}

function part(value: unknown, name: string): string | undefined {
  return isObject(value) ? lineOf(value[name]) : undefined
}

function listOf(value: unknown): string | undefined {
  if (!Array.isArray(value)) return lineOf(value)
  return lineOf(value.filter((item) => typeof item === 'string').join(', '))
}

function licences(value: unknown): string | undefined {
  if (!Array.isArray(value)) return undefined
  return lineOf(value.flatMap((licence) => part(licence, 'type') ?? lineOf(licence) ?? []).join(', '))
}

/** A person as npm writes one: `Name <email> (url)`. */
function person(value: unknown): string | undefined {
  const name = part(value, 'name')
  if (name === undefined) return lineOf(value)
  const email = part(value, 'email')
  const url = part(value, 'url')
  return [
    name,
    ...(email === undefined ? [] : [`<${email}>`]),
    ...(url === undefined ? [] : [`(${url})`]),
  ].join(' ')
}
