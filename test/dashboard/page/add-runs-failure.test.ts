import { LiveError } from 'rivulet/live'
import type { LiveErrorReason } from 'rivulet/live'
import { describe, expect, it } from 'vitest'
import { addRunsFailure } from '../../../src/dashboard/page/groups/add-runs.tsx'

describe('a failure to add runs', () => {
  it.each<LiveErrorReason>(['network', 'timeout', 'protocol', 'uncertain'])(
    'says after %s that the runs may have been added',
    (code) => {
      const text = addRunsFailure(new LiveError(code, 'No answer came in time'))
      expect(text).toMatch(/^It is not known whether the runs were added: No answer came in time\. Look at/)
      expect(text).not.toContain('not added')
    },
  )

  it('says so after an error that is not of the gateway', () => {
    expect(addRunsFailure(new TypeError('x'))).toMatch(/^It is not known/)
  })

  it.each<LiveErrorReason>(['forbidden', 'invalid', 'too_many', 'unavailable', 'unauthenticated', 'token'])(
    'says after %s that they were not',
    (code) => {
      expect(addRunsFailure(new LiveError(code, 'No'))).toBe('The runs were not added: No.')
    },
  )

  it('says when to try again', () => {
    const error = new LiveError('too_many', 'Slow down', { retryAfter: 41_000 })
    expect(addRunsFailure(error)).toBe('The runs were not added: Slow down. Try again in 41 s.')
  })
})
