import { EventEmitter } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Interrupted } from '../../src/cli/exit.ts'
import { abortOnSignals } from '../../src/cli/interruption.ts'

class Host extends EventEmitter {
  readonly exit = vi.fn<(code: number) => void>()
}

function signalled(...times: readonly number[]) {
  const host = new Host()
  const controller = new AbortController()
  abortOnSignals(controller, host)
  const clock = vi.spyOn(performance, 'now')
  for (const time of times) {
    clock.mockReturnValue(time)
    host.emit('SIGINT', 'SIGINT')
  }
  return { host, signal: controller.signal }
}

afterEach(() => void vi.restoreAllMocks())

describe('a signal', () => {
  it('asks the command to end', () => {
    const { host, signal } = signalled(1_000)

    expect(signal.reason).toBeInstanceOf(Interrupted)
    expect(host.exit).not.toHaveBeenCalled()
  })

  it('ends the process at once when it comes again', () => {
    const { host } = signalled(1_000, 2_000)

    expect(host.exit).toHaveBeenCalledExactlyOnceWith(130)
  })

  it('is the same one when npm passes on what the terminal has sent already', () => {
    const { host } = signalled(1_000, 1_003)

    expect(host.exit).not.toHaveBeenCalled()
  })
})
