import { getDomain } from 'tldts'
import { isObject } from '../../protocol/json.ts'
import { fieldOf, namesOf } from './json-value.ts'
import type { View } from './view.ts'
import { spend, VALUE } from './work.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Maximum length of a text that is made or searched, in characters. */
const MAX_TEXT = 256 * 1024

/** The output of an event: `data.output`, for a snapshot the change (`data.changed_output`), for a cancelled monitor its latest snapshot. */
export function outputOf(view: View): unknown {
  const { data } = view.event
  if (!isObject(data)) return undefined
  const output = data['output'] ?? data['changed_output']
  if (view.event.type === 'monitor.cancelled' && isObject(output)) return output['latest_snapshot']
  return output
}

/** Maximum number of values that are looked at for their text. */
const MAX_VALUES = 20_000

/** All text of an output's content, or of any JSON value: texts, numbers and booleans, joined by spaces. Cut at 256 kB, and at 20,000 values. */
export function contentText(json: unknown, view: View | undefined): string {
  const content = isOutput(json) ? json['content'] : json
  if (typeof content === 'string') return cut(content, view)
  const parts: string[] = []
  let length = 0
  let left = MAX_VALUES
  // A stack instead of recursion, since the value may be deeper than calls can be.
  const waiting: unknown[] = [content]
  while (waiting.length > 0) {
    const value = waiting.pop()
    spend(3 * VALUE)
    if (typeof value === 'object' && value !== null) {
      const names = Array.isArray(value) ? value : namesOf(value)
      const count = Math.min(names.length, left)
      if (count < names.length && view !== undefined) view.isCut = true
      left -= count
      for (let index = count - 1; index >= 0; index--) {
        waiting.push(names === value ? names[index] : fieldOf(value, String(names[index])))
      }
    } else if (value !== null && value !== undefined && value !== '') {
      const part = String(value)
      spend(part.length)
      parts.push(part)
      length += part.length + 1
      if (length > MAX_TEXT) break
    }
  }
  return cut(parts.join(' '), view)
}

/** The text, at most 256 kB of it. */
export function cut(text: string, view: View | undefined): string {
  if (text.length <= MAX_TEXT) return text
  if (view !== undefined) view.isCut = true
  return cutText(text, MAX_TEXT)
}

/** The work to parse a URL for its domain. */
const PARSED_URL = 2_000

/** Maximum number of citations that are looked at. */
const MAX_CITATIONS = 2_000

/** The registrable domains among the URLs of an output's citations, sorted. */
export function domainsOf(json: unknown): readonly string[] {
  const domains = new Set<string>()
  for (const url of urlsOf(basisOf(json))) {
    spend(PARSED_URL)
    const domain = domainOf(url)
    if (domain !== undefined) domains.add(domain)
  }
  return [...domains].toSorted()
}

/**
 * The registrable domain of a URL: `example.co.uk`, `a.github.io`, since publishers below such a suffix are independent of each other. An
 * address stands for itself. Undefined for a text that is no http or https URL, and for a URL whose domain cannot be registered.
 */
function domainOf(url: string): string | undefined {
  if (url.length > 4_096) return undefined
  const parsed = URL.parse(url)
  if (parsed === null || (parsed.protocol !== 'https:' && parsed.protocol !== 'http:')) return undefined
  const host = parsed.hostname.replace(/\.$/, '')
  if (/^\[|^[\d.]+$/.test(host)) return host
  return getDomain(host, { allowPrivateDomains: true, extractHostname: false }) ?? undefined
}

/** The bases of a field: `company`, or `company.name` and `company.0` within it. Case matters. */
export function basesOf(json: unknown, field: string): readonly Readonly<Record<string, unknown>>[] {
  const bases = basisOf(json)
  spend(10 * VALUE * bases.length)
  const within = [`${field}.`, `${field}[`]
  return bases.filter(({ field: name }) => {
    return typeof name === 'string' && (name === field || within.some((start) => name.startsWith(start)))
  })
}

function basisOf(json: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (!isObject(json)) return []
  const { basis } = json
  return Array.isArray(basis) ? basis.slice(0, MAX_CITATIONS).filter(isObject) : []
}

function citationsOf(
  bases: readonly Readonly<Record<string, unknown>>[],
): readonly Readonly<Record<string, unknown>>[] {
  const citations: Readonly<Record<string, unknown>>[] = []
  for (const { citations: members } of bases) {
    if (!Array.isArray(members)) continue
    for (const member of members) {
      if (citations.length >= MAX_CITATIONS) return citations
      spend(VALUE)
      if (isObject(member)) citations.push(member)
    }
  }
  return citations
}

/** The URLs of the citations, each once, in their order. */
export function urlsOf(bases: readonly Readonly<Record<string, unknown>>[]): readonly string[] {
  const urls = new Set<string>()
  for (const { url } of citationsOf(bases)) if (typeof url === 'string') urls.add(url)
  return [...urls]
}

const LEVELS = ['low', 'medium', 'high']

/** The lowest confidence among the bases; undefined if none has one. */
export function confidenceOf(bases: readonly Readonly<Record<string, unknown>>[]): string | undefined {
  const levels = bases.map(({ confidence }) => confidence).filter((level) => typeof level === 'string')
  return levels.toSorted((a, b) => LEVELS.indexOf(a) - LEVELS.indexOf(b))[0]
}

/** Whether an excerpt of a citation contains the text. Case and spaces do not matter. */
export function isQuoted(bases: readonly Readonly<Record<string, unknown>>[], text: string): boolean {
  const wanted = plain(text)
  if (wanted === '') return false
  let length = 0
  for (const { excerpts } of citationsOf(bases)) {
    if (!Array.isArray(excerpts)) continue
    for (const excerpt of excerpts) {
      if (typeof excerpt !== 'string') continue
      length += excerpt.length
      if (length > MAX_TEXT) return false
      spend(20 * excerpt.length)
      if (plain(excerpt).includes(wanted)) return true
    }
  }
  return false
}

function plain(text: string): string {
  return text.toLowerCase().replace(/\s+/g, ' ').trim()
}

/** Whether the value is the output of a run or a monitor. */
function isOutput(json: unknown): json is Readonly<Record<string, unknown>> {
  return isObject(json) && 'content' in json && 'basis' in json
}
