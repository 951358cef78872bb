import { CommanderError } from 'commander'
import {
  ArgumentError,
  AuthenticationError,
  CheckpointInUseError,
  ConnectionError,
  NotFoundError,
  ServerError,
  StateFileError,
} from 'rivulet'
import { describe, expect, it } from 'vitest'
import { complaint, exitCodeOf, Interrupted, OutputClosed, UsageError } from '../../src/cli/exit.ts'

const request = { method: 'GET', path: '/v1/monitors/m' }
const refusal = (status: number) => ({ status, retryable: false, taken: 'no' as const })

/** What `await using` throws where closing fails too. */
function suppressed(later: Error, first: Error) {
  return new SuppressedError(later, first)
}

describe('the exit code', () => {
  it.each([
    ['help that was asked for', new CommanderError(0, 'commander.helpDisplayed', ''), 0],
    ['an unknown option', new CommanderError(1, 'commander.unknownOption', ''), 2],
    ['a reader that went away', new OutputClosed(), 0],
    ['a failure of the service', new ServerError(request, refusal(500)), 1],
    ['an error that nobody expected', new Error('boom'), 1],
    ['a wrong environment', new UsageError('no key'), 2],
    ['a wrong argument', new ArgumentError('limit', 'smaller', 101), 2],
    ['a wrong key', new AuthenticationError(request, refusal(401)), 3],
    ['something that is not there', new NotFoundError(request, refusal(404)), 4],
    ['a service that cannot be reached', new ConnectionError('refused', 'refused', request), 5],
    [
      'a state file of another process',
      new CheckpointInUseError('in use', { file: 'f', owner: 'o', expiresAt: 0 }),
      6,
    ],
    ['a state file that is damaged', new StateFileError('f', 'is damaged'), 7],
    ['a failure with another one behind it', suppressed(new Error('after'), new UsageError('no key')), 2],
    ['Ctrl-C', new Interrupted('SIGINT'), 130],
    ['SIGTERM', new Interrupted('SIGTERM'), 143],
  ])('of %s', (_what, error, code) => {
    expect(exitCodeOf(error)).toBe(code)
  })

  it('comes with a word on stderr, unless nothing is wrong or it was said', () => {
    expect(complaint(new UsageError('no key'))).toBe('no key')
    expect(complaint(suppressed(new Error('after'), new UsageError('no key')))).toBe('no key')
    expect(complaint(new Interrupted('SIGINT'))).toBeUndefined()
    expect(complaint(new OutputClosed())).toBeUndefined()
    expect(complaint(new CommanderError(1, 'commander.unknownOption', 'said'))).toBeUndefined()
  })
})
