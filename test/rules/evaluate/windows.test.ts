import { expect, it } from 'vitest'
import { ArgumentError } from '../../../src/protocol/argument-error.ts'
import { compileExpression } from '../../../src/rules/cel/index.ts'
import { windowsOf } from '../../../src/rules/evaluate/windows/windows.ts'

it('names the rule whose sequence has more steps than a window has room for', () => {
  const steps = Array.from({ length: 31 }, () => compileExpression('true'))
  const windows = [{ kind: 'sequence', steps, notThen: undefined, within: 1 } as const]

  expect(() => windowsOf({ name: 'Stalled', windows })).toThrow(
    new ArgumentError('Stalled.sequence.steps', 'at most 30 steps', 31),
  )
})
