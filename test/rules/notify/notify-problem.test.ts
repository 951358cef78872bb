import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { report, warn } from '../../../src/rules/notify/notify-problem.ts'

const problem = { notifier: 'slack', error: new Error('down'), attempt: 1 }

it('ignores what onProblem throws, or rejects with', async () => {
  const unhandled = vi.fn<() => void>()
  process.on('unhandledRejection', unhandled)
  onTestFinished(() => void process.off('unhandledRejection', unhandled))

  report(() => {
    throw new Error('thrown')
  }, problem)
  report(async () => {
    throw new Error('rejected')
  }, problem)
  await setImmediate()

  expect(unhandled).not.toHaveBeenCalled()
})

it('warns at the attempts 1, 2, 4 and so on, and of what is not tried again', async () => {
  const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  onTestFinished(() => warnings.mockRestore())

  for (const attempt of [0, 1, 2, 3, 4, 5, 6, 7, 8]) warn({ ...problem, attempt })

  expect(warnings.mock.calls.map(([message]) => message)).toEqual([
    'slack: down',
    'slack: down',
    'slack: down (2 attempts)',
    'slack: down (4 attempts)',
    'slack: down (8 attempts)',
  ])
})
