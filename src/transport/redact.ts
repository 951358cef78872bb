import { cutText } from '../protocol/cut-text.ts'
import { isObject } from '../protocol/json.ts'
import { HIDDEN } from '../protocol/redactor.ts'
import type { Redact } from '../protocol/redactor.ts'
import type { RequestError } from './errors.ts'

/** The longest error message, in characters: some contain text of the peer. */
const MAX_MESSAGE = 4_000

/** How deeply the causes of an error are followed. */
const MAX_DEPTH = 4

/** A JSON value without the secrets in its strings, numbers and keys. */
export function redactJson(value: unknown, redact: Redact): unknown {
  if (typeof value === 'string') return redact(value)
  if (typeof value === 'number') return redact(String(value)) === String(value) ? value : HIDDEN
  if (Array.isArray(value)) return value.map((entry) => redactJson(entry, redact))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [redact(name), redactJson(entry, redact)]),
  )
}

/** Removes the secrets from the error, and replaces its cause by a redacted copy without the bytes that the peer sent. */
export function redactError<Failure extends RequestError>(error: Failure, redact: Redact): Failure {
  error.message = cutText(redact(error.message), MAX_MESSAGE)
  if (error.stack !== undefined) error.stack = redact(error.stack)
  if (error.cause !== undefined) error.cause = copyOf(error.cause, redact, 1)
  return error
}

/** Fields of the platform's errors that are copied. */
const COPIED = ['code', 'errno', 'syscall', 'hostname', 'address', 'port'] as const

function copyOf(cause: unknown, redact: Redact, depth: number): unknown {
  if (typeof cause === 'string') return redact(cause)
  if (!(cause instanceof Error)) return typeof cause === 'object' ? undefined : cause
  const copy: Error & { errors?: readonly unknown[] } = new Error(cutText(redact(cause.message), MAX_MESSAGE))
  Object.defineProperty(copy, 'name', { value: redact(cause.name), configurable: true })
  if (cause.stack !== undefined) copy.stack = redact(cause.stack)
  for (const field of COPIED) {
    const value: unknown = field in cause ? Reflect.get(cause, field) : undefined
    if (typeof value === 'string') Reflect.set(copy, field, redact(value))
    else if (typeof value === 'number') Reflect.set(copy, field, value)
  }
  if (depth >= MAX_DEPTH) return copy
  if (cause.cause !== undefined) copy.cause = copyOf(cause.cause, redact, depth + 1)
  if (cause instanceof AggregateError) {
    copy.errors = cause.errors.slice(0, MAX_DEPTH).map((each) => copyOf(each, redact, depth + 1))
  }
  return copy
}
