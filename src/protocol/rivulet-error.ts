import type { Retryable } from './backoff.ts'

/**
 * Base class of the library's errors; docs/reference/errors.md lists them. `instanceof` tells apart errors of one copy of the package, `code` also
 * those of several copies.
 */
export abstract class RivuletError extends Error implements Retryable {
  abstract override readonly name: string
  /** The kind of the error, for programs: the name of the class without `Error`, in snake case. It stays the same in later versions. */
  abstract readonly code: string
  /** Whether the same call may succeed later. Default false. `reconnect` and `deliver` retry accordingly. */
  readonly retryable: boolean = false

  /** The fields that `JSON.stringify` writes: it would leave out the message. Others may be of any size, or no JSON. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, message, retryable } = this
    return { name, code, message, retryable }
  }
}
