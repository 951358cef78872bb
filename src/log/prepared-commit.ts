import { MAX_COMMIT_BYTES } from './contract.ts'
import type { Commit } from './contract.ts'
import { LogValueError } from './errors.ts'

/**
 * A copy of a commit with its defaults: what the caller does to it later has no effect.
 *
 * @throws {LogValueError} for one of more than {@link MAX_COMMIT_BYTES}.
 */
export function preparedCommit(log: string, reader: string, given: Commit): Required<Commit> {
  const { expect, cursor, acknowledged, deadLetters = [], redelivered = [] } = given
  const commit = {
    expect,
    cursor,
    acknowledged: [...acknowledged],
    deadLetters: structuredClone(deadLetters),
    redelivered: [...redelivered],
  }
  const bytes = new TextEncoder().encode(JSON.stringify(commit)).length
  if (bytes <= MAX_COMMIT_BYTES) return commit
  const problem = `its ${bytes} bytes are more than ${MAX_COMMIT_BYTES}`
  throw new LogValueError(log, `a commit of ${JSON.stringify(reader)}`, problem)
}
