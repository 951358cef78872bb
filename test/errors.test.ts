import { describe, expect, expectTypeOf, it, vi } from 'vitest'
import type { AnswerFailedError, ApiError, PartialWriteError, UncertainRequestError } from 'rivulet'
import type { LogError } from 'rivulet/log'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import { RivuletError } from '../src/protocol/rivulet-error.ts'
import { apiErrorOf } from '../src/transport/retry-policy.ts'
import { entryPoints } from './support/entry-points.ts'
import { plain, tablesOf } from './support/markdown-table.ts'

/** Stands for each argument of a constructor, and has whatever is read of it. Its text is a URL. */
const ANYTHING: unknown = new Proxy(() => undefined, {
  get: (_target, key) => {
    if (key === Symbol.toPrimitive) return () => 'https://example.com'
    return key === Symbol.iterator ? () => [].values() : ANYTHING
  },
  apply: () => ANYTHING,
})

type Constructor = new (...given: unknown[]) => Error

function isErrorClass(value: unknown): value is Constructor {
  return typeof value === 'function' && value.prototype instanceof Error
}

/** An error of each exported class, and the entry points that export it. */
const exported = new Map<string, { readonly error: Error; readonly from: readonly string[] }>()
for (const { name: entry, values } of await entryPoints()) {
  for (const [name, value] of Object.entries(values)) {
    if (!isErrorClass(value)) continue
    const { error = new value(ANYTHING, ANYTHING, ANYTHING, ANYTHING), from = [] } = exported.get(name) ?? {}
    exported.set(name, { error, from: [...from, entry] })
  }
}

/** The code of an error. The bases of others have none. */
function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

const bases = [...exported].filter(([, { error }]) => codeOf(error) === undefined)
const classes = [...exported].filter(([, { error }]) => codeOf(error) !== undefined)

/** The rows of the tables of docs/reference/errors.md. */
const rows = tablesOf('docs/reference/errors.md').flatMap(({ head, rows: cells }) => {
  const retry = head.indexOf('Retry')
  return cells.map((row) => {
    const [name = '', code, from] = row.map(plain)
    return { name, code, from, retry: row[retry] ?? '' }
  })
})

/** Whether the errors of a class are retryable: all of them, none, or some. */
function retryability(name: string): 'yes' | '' | 'some' {
  const { error } = exported.get(name) ?? {}
  if (!(error instanceof RivuletError)) return ''
  // It is as retryable as its cause, which here is none.
  if (name === 'ConsumerError') return 'some'
  if (typeof error.retryable === 'boolean') return error.retryable ? 'yes' : ''
  const ofStatuses = errorsOfStatuses.filter((other) => other.name === name)
  if (ofStatuses.length === 0) return 'some'
  if (ofStatuses.every(({ retryable }) => retryable)) return 'yes'
  return ofStatuses.some(({ retryable }) => retryable) ? 'some' : ''
}

/** The errors of responses with each status other than 2xx. */
const errorsOfStatuses = Array.from({ length: 300 }, (_, index) => {
  const request = { method: 'GET', path: '/v1/monitors' }
  const context = { request, now: () => 0, redact: (text: string) => text }
  return apiErrorOf(context, 300 + index, () => undefined, '')
})

describe('RivuletError.is', () => {
  it('recognizes an error of another copy of the package by its code', async () => {
    const { LogClosedError } = await import('rivulet/log')
    vi.resetModules()
    const other = await import('rivulet/log')
    const error: unknown = new other.LogClosedError('the log')

    expect(error).not.toBeInstanceOf(LogClosedError)
    expect(RivuletError.is(error, 'log_closed')).toBe(true)
    expect(RivuletError.is(error, 'log')).toBe(false)
  })

  it.each([undefined, null, 'log_closed', { code: 'log_closed' }, new Error('log_closed')])(
    'is false for anything else: %s',
    (value) => {
      expect(RivuletError.is(value, 'log_closed')).toBe(false)
    },
  )

  it('narrows to the class whose code it is', () => {
    const error: unknown = new ArgumentError('limit', 'an integer', 'x')

    expect(RivuletError.is<ArgumentError>(error, 'argument') && error.argument).toBe('limit')
    expectTypeOf(RivuletError.is<ArgumentError>)
      .parameter(1)
      .toEqualTypeOf<'argument'>()
  })

  it('takes no code for a class that others extend, whose type stands for their codes too', () => {
    const error: unknown = new ArgumentError('limit', 'an integer', 'x')

    expectTypeOf(RivuletError.is<LogError>)
      .parameter(1)
      .toBeNever()
    expectTypeOf(RivuletError.is<ApiError>)
      .parameter(1)
      .toBeNever()
    expectTypeOf(RivuletError.is<AnswerFailedError>)
      .parameter(1)
      .toBeNever()
    expectTypeOf(RivuletError.is<UncertainRequestError>)
      .parameter(1)
      .toBeNever()
    expectTypeOf(RivuletError.is<PartialWriteError>)
      .parameter(1)
      .toBeNever()
    expect(RivuletError.is(error, 'argument')).toBe(true)
  })
})

describe('the errors that entry points export', () => {
  it('are those of docs/reference/errors.md, with their codes', () => {
    const all = classes.map(([name, { error, from }]) => `${name} ${codeOf(error)}: ${from.join(', ')}`)

    expect(rows.map(({ name, code, from }) => `${name} ${code}: ${from}`).toSorted()).toEqual(all.toSorted())
    expect(all).toContain('LogFileError log_file: rivulet/log')
  })

  it('are retryable if docs/reference/errors.md says so: all of a class, none, or some', () => {
    const documented = rows.map(({ name, retry }) => [name, /^(yes)?$/.test(retry) ? retry : 'some'])

    expect(documented).toEqual(rows.map(({ name }) => [name, retryability(name)]))
    expect(Object.fromEntries(documented)).toMatchObject({
      NotFoundError: '',
      RateLimitError: 'yes',
      ServerError: 'some',
      LogFileError: 'some',
    })
  })

  it('have the name of their class, and as their code that name in snake case', () => {
    const expected = classes.map(([name]) => {
      const words = name.replace(/Error$/, '').match(/[A-Z][a-z]+/g) ?? []
      return [name, words.join('_').toLowerCase()]
    })

    expect(classes.map(([, { error }]) => [error.name, codeOf(error)])).toEqual(expected)
  })

  it('have a code each', () => {
    expect(new Set(classes.map(([, { error }]) => codeOf(error))).size).toBe(classes.length)
  })

  it('have one base, except that of a page, and say whether to retry', () => {
    const others = classes.filter(
      ([, { error }]) => !(error instanceof RivuletError) || typeof error.retryable === 'undefined',
    )

    expect(others.map(([name]) => name)).toEqual(['LiveError'])
    expect(bases.map(([name]) => name).toSorted()).toEqual(['RequestError', 'RivuletError'])
  })
})
