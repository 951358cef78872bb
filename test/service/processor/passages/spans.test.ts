import { describe, expect, it } from 'vitest'
import { headOf } from '../../../../src/service/processor/passages/spans.ts'

describe('the name that a statement begins with', () => {
  it.each([
    ['`port`: the port', 'port'],
    ['`maxAge` (number): in seconds', 'maxAge'],
    ['**[retry()](#retry)** - tries again', 'retry()'],
    ['__level__: the level', 'level'],
    ['timeout - in ms', 'timeout'],
    ['  --dry-run, -n  without writing', '--dry-run, -n'],
    ['@scope/name: a package', '@scope/name'],
  ])('of %s is %s', (statement, name) => {
    expect(headOf(statement)).toBe(name)
  })

  it.each(['Use it for all files.', '________', '1. first'])('is none in %s', (statement) => {
    expect(headOf(statement)).toBeUndefined()
  })

  // Each took more than an hour while two parts of the expression could begin with the same character.
  it.each(['_', '*', '`', "'", '[', 'a_', '_*', '$', '@', '.', '-', '--a,', ' ', '('])(
    'is none in a whole passage of %s',
    (part) => {
      expect(headOf(part.repeat(2_400))).toBeUndefined()
      expect(headOf(`name${part.repeat(2_400)}`)).toBeUndefined()
    },
  )
})
