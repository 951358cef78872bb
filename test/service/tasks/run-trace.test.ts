import { describe, expect, it } from 'vitest'
import { RunTrace } from '../../../src/service/tasks/run-trace.ts'

describe('a message of a trace', () => {
  it('is cut between two characters, never within one', () => {
    const trace = new RunTrace()
    trace.add({ message: { kind: 'plan', text: `${'x'.repeat(1_999)}🌊` } }, '2026-01-01T00:00:00Z')

    expect(trace.messages).toMatchObject([{ message: 'x'.repeat(1_999) }])
  })
})
