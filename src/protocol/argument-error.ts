import { cutText } from './cut-text.ts'
import { RivuletError } from './rivulet-error.ts'

/**
 * An invalid argument, reported at the call and before any request.
 *
 * `argument` is its name (`advanced_settings.location`), `value` the given value, or `(not shown)` if it may be secret.
 */
export class ArgumentError extends RivuletError {
  override readonly name = 'ArgumentError'
  override readonly code = 'argument'
  readonly argument: string
  readonly value: unknown

  /**
   * @param expected The requirement, as in "limit must be an integer from 1 to 100, got 500", or the whole message.
   * @param value The given value; `hidden(value)` if it may be secret.
   */
  constructor(argument: string, expected: string | { readonly message: string }, value: unknown) {
    super(
      typeof expected === 'string'
        ? `${argument} must be ${expected}, got ${describe(value)}`
        : expected.message,
    )
    this.argument = argument
    this.value = value instanceof Hidden ? '(not shown)' : value
  }
}

/** A description of a value, used instead of the value. */
class Hidden {
  readonly description: string

  constructor(description: string) {
    this.description = description
  }
}

/** Hides a value that may be secret: an {@link ArgumentError} shows only its kind. */
export function hidden(value: unknown): unknown {
  if (value === null || value === undefined) return value
  if (typeof value !== 'string') return new Hidden(kindOf(value))
  return new Hidden(value === '' ? 'an empty string' : 'a string (not shown)')
}

/** The part of a URL that is not secret: without user, password, query and fragment. */
export function shownUrl(value: unknown): unknown {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || url.host === '') return hidden(value)
  const left = [
    ...(url.username === '' && url.password === '' ? [] : ['credentials']),
    ...(url.search === '' ? [] : ['query']),
    ...(url.hash === '' ? [] : ['fragment']),
  ]
  const shown = JSON.stringify(`${url.protocol}//${url.host}${url.pathname}`)
  return new Hidden(left.length === 0 ? shown : `${shown} (without its ${left.join(' and ')})`)
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object') return 'an object'
  return typeof value === 'function' ? 'a function' : `a ${typeof value}`
}

function describe(value: unknown): string {
  if (value instanceof Hidden) return value.description
  if (typeof value === 'string')
    return value.length > 60 ? `${JSON.stringify(cutText(value, 60))}…` : JSON.stringify(value)
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return String(value)
  return kindOf(value)
}
