import { cutText } from '../protocol/cut-text.ts'
import { isObject } from '../protocol/json.ts'

/** Maximum length of the path that is shown, in characters. */
const MAX_PATH = 500

/** A part of a value. */
interface Part {
  /** Its path in the value: the innermost step first. */
  readonly steps: string[]
  readonly found: string
}

/**
 * The first part of a value that JSON does not give back as it is, such as `state.items[3].when is an instance of Date`. Undefined if
 * JSON gives back all of it. Properties that are undefined are left out by JSON, and accepted.
 *
 * @param name Name of the value in the text.
 * @throws RangeError for a value that is nested too deeply, or contains itself.
 */
export function notJson(name: string, value: unknown): string | undefined {
  const part = lostPart(value)
  if (part === undefined) return undefined
  return `${cutText([name, ...part.steps.toReversed()].join(''), MAX_PATH)} is ${part.found}`
}

/** Called for each state that is set: in less than half the time of `JSON.stringify`, and without allocating. */
function lostPart(value: unknown): Part | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : { steps: [], found: String(value) }
    case 'undefined':
      return { steps: [], found: 'undefined' }
    case 'object':
      if (Array.isArray(value)) return lostItem(value)
      return isObject(value) ? lostProperty(value) : undefined
    default:
      return { steps: [], found: `a ${typeof value}` }
  }
}

function lostItem(list: readonly unknown[]): Part | undefined {
  if (!isPlain(Object.getPrototypeOf(list))) return instance(list)
  // A hole is undefined, too.
  for (let index = 0; index < list.length; index++) {
    const part = lostPart(list[index])
    if (part !== undefined) return within(`[${index}]`, part)
  }
  return undefined
}

function lostProperty(object: Readonly<Record<string, unknown>>): Part | undefined {
  if (!isPlain(object)) return instance(object)
  for (const name in object) {
    const value = object[name]
    const part = value === undefined ? undefined : lostPart(value)
    if (part !== undefined)
      return within(/^[\w$]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`, part)
  }
  return undefined
}

function isPlain(value: unknown): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  // The Object.prototype of another realm has no prototype either.
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

function instance(value: object): Part {
  const { constructor } = value
  const name = typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class'
  return { steps: [], found: `an instance of ${cutText(name, 100)}` }
}

function within(step: string, part: Part): Part {
  part.steps.push(step)
  return part
}
