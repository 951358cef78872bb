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

  /**
   * Whether it is the error with this `code`, from any copy of the package and any entry point. It narrows to the class, of which only
   * the type is needed. A class that others extend, such as `LogError`, does not compile: its type stands for their codes too.
   *
   * ```ts
   * import { RivuletError } from 'rivulet'
   * import type { LogInUseError } from 'rivulet/log'
   *
   * export const ownerOf = (error: unknown) =>
   *   RivuletError.is<LogInUseError>(error, 'log_in_use') ? error.owner : undefined
   * ```
   */
  static is<Class extends Error & { readonly code: string }>(
    error: unknown,
    code: string extends Class['code'] ? never : Class['code'],
  ): error is Class
  /** Whether it is an error with this `code`, of any class. */
  static is(error: unknown, code: string): error is Error & { readonly code: string }
  static is(error: unknown, code: string): boolean {
    return error instanceof Error && 'code' in error && error.code === code
  }

  /** The fields that `JSON.stringify` writes: it would leave out the message. Others may be of any size, or no JSON. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, message, retryable } = this
    return { name, code, message, retryable }
  }
}
