import { CommanderError } from 'commander'
import { ArgumentError, AuthenticationError, ConnectionError, NotFoundError, ServerError } from 'rivulet'
import { LogFileError, LogInUseError, LogServerError } from 'rivulet/log'
import { RuleError } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'
import {
  CopiedLogInUse,
  errorMessageOf,
  exitCodeOf,
  Interrupted,
  OutputClosed,
  RecordedElsewhere,
  UsageError,
} from '../../src/cli/exit.ts'

const problem = { file: 'rules.yaml', line: 3, column: 5, path: '', rule: 'TooMany', message: 'no condition' }
const request = { method: 'GET', path: '/v1/monitors/m' }
const refusal = (status: number) => ({ status, retryable: false, taken: 'no' as const })

/** The error that `await using` throws if disposal fails too. */
function suppressed(later: Error, first: Error) {
  return new SuppressedError(later, first)
}

describe('the exit code', () => {
  it.each([
    ['requested help', new CommanderError(0, 'commander.helpDisplayed', ''), 0],
    ['an unknown option', new CommanderError(1, 'commander.unknownOption', ''), 2],
    ['a reader that went away', new OutputClosed(), 0],
    ['a failure of the service', new ServerError(request, refusal(500)), 1],
    ['an unexpected error', new Error('boom'), 1],
    ['a wrong environment', new UsageError('no key'), 2],
    ['a wrong argument', new ArgumentError('limit', 'smaller', 101), 2],
    ['rules with problems', new RuleError([]), 2],
    ['a wrong key', new AuthenticationError(request, refusal(401)), 3],
    ['something that is not there', new NotFoundError(request, refusal(404)), 4],
    ['a service that cannot be reached', new ConnectionError('refused', 'refused', request), 5],
    [
      'the server of a log that cannot be reached',
      new LogServerError('the log', 'cannot be reached', { retryable: true }),
      5,
    ],
    ['the server of a log that refuses it', new LogServerError('the log', 'was refused'), 7],
    [
      'a failure with a second one in its cleanup',
      suppressed(new Error('after'), new UsageError('no key')),
      2,
    ],
    ['Ctrl-C', new Interrupted('SIGINT'), 130],
    ['SIGTERM', new Interrupted('SIGTERM'), 143],
  ])('of %s', (_what, error, code) => {
    expect(exitCodeOf(error)).toBe(code)
  })

  it('has the code at the end of the message, if docs/troubleshooting.md has it', () => {
    const inUse = new LogInUseError('rivulet.db', 'monitors/m', 'process 42')

    expect(errorMessageOf(new LogFileError('rivulet.db', 'is a folder'))).toBe(
      'rivulet.db is a folder [log_file]',
    )
    expect(errorMessageOf(new RuleError([problem]))).toBe('rules.yaml:3:5: TooMany: no condition [rule]')
    expect(errorMessageOf(new RecordedElsewhere(inUse))).toMatch(/\[log_in_use\]$/)
    expect(errorMessageOf(new CopiedLogInUse(inUse))).toMatch(/\[log_in_use\]$/)
  })

  it('has a message on stderr, unless there is no failure or commander has printed it', () => {
    expect(errorMessageOf(new UsageError('no key'))).toBe('no key')
    expect(errorMessageOf(suppressed(new Error('after'), new UsageError('no key')))).toBe('no key')
    expect(errorMessageOf(new Error('no code'))).toBe('no code')
    expect(errorMessageOf(Object.assign(new Error('no file'), { code: 'ENOENT' }))).toBe('no file')
    expect(errorMessageOf(new Interrupted('SIGINT'))).toBeUndefined()
    expect(errorMessageOf(new OutputClosed())).toBeUndefined()
    expect(errorMessageOf(new CommanderError(1, 'commander.unknownOption', 'printed'))).toBeUndefined()
  })
})
