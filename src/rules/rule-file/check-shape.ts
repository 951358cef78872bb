import type { z } from 'zod'
import { nearestName } from '../../protocol/check.ts'
import { displayValue } from './display-value.ts'
import { pathText } from './source.ts'
import type { Path, Within } from './source.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Reports a problem at a value or within it. The path is from the value that was checked. */
export type Complain = (path: Path, message: string, at?: Within) => void

/** Reports the problems that a schema has found. */
export function complainOfShape(
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  schema: z.ZodType,
  complain: Complain,
): void {
  const reported = new Set<string>()
  for (const issue of issues) {
    // A text instead of a list is no list, and can be too long as well.
    const identity = `${issue.path.map(String).join('\n')}\n${issue.message}`
    if (issue.code !== 'unrecognized_keys' && reported.has(identity)) continue
    reported.add(identity)
    complainOf(issue, value, schema, complain)
  }
}

function complainOf(issue: z.core.$ZodIssue, value: unknown, schema: z.ZodType, complain: Complain): void {
  const path = issue.path.filter((part) => typeof part !== 'symbol')
  if (issue.code === 'unrecognized_keys') {
    const known = propertiesAt(schema, path)
    for (const name of issue.keys) complain(path, unknownProperty(name, path, known), { name })
    return
  }
  // The path of an invalid name in a record ends with the name.
  if (issue.code === 'invalid_key') {
    const [first] = issue.issues
    const name = String(path.at(-1))
    const message = `${displayValue(name)} cannot be a name: write ${first?.message ?? 'another one'}.`
    return complain(path.slice(0, -1), message, { name })
  }
  const given = valueAt(value, path)
  const label = path.length === 0 ? 'This' : pathText(path)
  if (given === undefined) {
    return complain(path.slice(0, -1), `${label} is missing: write ${issue.message}.`)
  }
  complain(path, sentence(`${label} must be ${issue.message}${gotText(given, issue)}`))
}

function sentence(text: string): string {
  return text.endsWith('?') ? text : `${text}.`
}

function gotText(given: unknown, issue: z.core.$ZodIssue): string {
  if (given === null) return ', and it is empty'
  if (issue.code === 'invalid_type' && issue.expected === 'string' && !isCollection(given))
    return `: put it into quotes, "${cutText(String(given), 60)}"`
  if (issue.code === 'invalid_type' && issue.expected === 'array' && typeof given === 'string')
    return `: write [${cutText(given, 60)}]`
  if (issue.code === 'invalid_type' && issue.expected === 'number' && typeof given === 'string')
    return `, not the text ${JSON.stringify(cutText(given, 60))}`
  const values = valuesOf(issue)
  if (values !== undefined && typeof given === 'string') {
    const nearest = nearestName(given, values)
    if (nearest !== undefined) return `, not ${displayValue(given)}: did you mean ${nearest}?`
  }
  if (Array.isArray(given)) return `, not a list of ${given.length}`
  return isCollection(given) ? ', not an object' : `, not ${displayValue(given)}`
}

/** The values that are allowed there, if they are few. */
function valuesOf(issue: z.core.$ZodIssue): readonly string[] | undefined {
  if (issue.code === 'invalid_value') return issue.values.map(String)
  const values: unknown = issue.code === 'custom' ? issue.params?.['values'] : undefined
  return Array.isArray(values) ? values.map(String) : undefined
}

/** Names from other tools, and their names here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  name: 'alert',
  expr: 'when',
  condition: 'when',
  filter: 'when',
  type: 'on',
  types: 'on',
  query_key: 'key',
  group_by: 'key',
  threshold: 'gte',
  num_events: 'gte',
  timeframe: 'over',
  window: 'over',
  severity: 'labels: { severity: … }',
  summary: 'annotations: { summary: … }',
  description: 'annotations: { description: … }',
}

function unknownProperty(name: string, path: Path, known: readonly string[]): string {
  const where = path.length === 0 ? 'This' : pathText(path)
  const near = nearestName(name, known)
  if (near !== undefined) return `${where} has no property ${displayValue(name)}: did you mean ${near}?`
  const elsewhere = Object.hasOwn(ELSEWHERE, name) ? ELSEWHERE[name] : undefined
  if (elsewhere !== undefined && known.includes(elsewhere.replace(/:.*/, '')))
    return `${where} has no property ${displayValue(name)}: write ${elsewhere}.`
  return `${where} has no property ${displayValue(name)}: it can have ${known.join(', ')}.`
}

/** The properties of the object at a path of a schema. */
function propertiesAt(schema: z.ZodType, path: Path): readonly string[] {
  let at: unknown = unwrapped(schema)
  for (const part of path) {
    const shape = memberOf(at, 'shape')
    at = unwrapped(typeof part === 'number' ? memberOf(at, 'element') : memberOf(shape, part))
  }
  return Object.keys(Object(memberOf(at, 'shape')))
}

function unwrapped(schema: unknown): unknown {
  const unwrap = memberOf(schema, 'unwrap')
  // Arrays have `unwrap`, too.
  return typeof unwrap === 'function' && memberOf(schema, 'element') === undefined
    ? unwrap.call(schema)
    : schema
}

function memberOf(value: unknown, name: string): unknown {
  return isCollection(value) ? Reflect.get(value, name) : undefined
}

function valueAt(value: unknown, path: Path): unknown {
  let at = value
  for (const part of path) {
    if (!isCollection(at) || !Object.hasOwn(at, part)) return undefined
    at = Reflect.get(at, part)
  }
  return at
}

function isCollection(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
