import { EventEmitter } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { runFrame } from '../../bench/servers/run-frames.ts'
import { Interrupted } from '../../src/cli/exit.ts'
import { abortOnSignals } from '../../src/cli/interruption.ts'
import { answer, openStream, serve } from '../support/serve.ts'
import { rivulet } from './command.ts'

type Signal = 'SIGINT' | 'SIGTERM'

class Host extends EventEmitter {
  readonly exit = vi.fn<(code: number) => void>()
  readonly stderr = { isTTY: false, write: vi.fn<(text: string) => boolean>() }
  readonly env: Readonly<Record<string, string>>

  constructor(env: Readonly<Record<string, string>>) {
    super()
    this.env = env
  }
}

/** Emits signals at these times, in ms, on a process with this environment. */
function signalled(
  signals: readonly (readonly [Signal, number])[],
  env: Readonly<Record<string, string>> = {},
  isTTY = false,
) {
  const host = new Host(env)
  host.stderr.isTTY = isTTY
  const controller = new AbortController()
  abortOnSignals(controller, host)
  const clock = vi.spyOn(performance, 'now')
  for (const [signal, time] of signals) {
    clock.mockReturnValue(time)
    host.emit(signal, signal)
  }
  return { host, signal: controller.signal }
}

const NPM = { npm_lifecycle_event: 'rivulet' }

afterEach(() => void vi.restoreAllMocks())

describe('a signal', () => {
  it('aborts the command', () => {
    const { host, signal } = signalled([['SIGINT', 1_000]])

    expect(signal.reason).toBeInstanceOf(Interrupted)
    expect(host.exit).not.toHaveBeenCalled()
  })

  it("prints a line end after the terminal's ^C", () => {
    const { stderr } = signalled([['SIGINT', 1_000]], {}, true).host

    expect(stderr.write).toHaveBeenCalledExactlyOnceWith('\n')
  })

  it.each([
    ['no terminal', 'SIGINT', false],
    ['no Ctrl-C', 'SIGTERM', true],
  ] as const)('prints no line end with %s', (_, signal, isTTY) => {
    const { stderr } = signalled([[signal, 1_000]], {}, isTTY).host

    expect(stderr.write).not.toHaveBeenCalled()
  })

  it.each([0, 3, 100, 2_000])('ends the process immediately when it is repeated %i ms later', (gap) => {
    const { host } = signalled([
      ['SIGINT', 1_000],
      ['SIGINT', 1_000 + gap],
    ])

    expect(host.exit).toHaveBeenCalledExactlyOnceWith(130)
  })

  it("is ignored when it is npm's echo", () => {
    const { host } = signalled(
      [
        ['SIGINT', 1_000],
        ['SIGINT', 1_048],
      ],
      NPM,
    )

    expect(host.exit).not.toHaveBeenCalled()
  })

  it.each<{ readonly when: string; readonly signals: readonly (readonly [Signal, number])[] }>([
    {
      when: 'later',
      signals: [
        ['SIGTERM', 1_000],
        ['SIGTERM', 1_101],
      ],
    },
    {
      when: 'a third time',
      signals: [
        ['SIGTERM', 1_000],
        ['SIGTERM', 1_001],
        ['SIGTERM', 1_002],
      ],
    },
    {
      when: 'as another one',
      signals: [
        ['SIGINT', 1_000],
        ['SIGTERM', 1_001],
      ],
    },
  ])('ends the process immediately under npm too when it arrives $when', ({ signals }) => {
    const { host } = signalled(signals, NPM)

    expect(host.exit).toHaveBeenCalledExactlyOnceWith(143)
  })
})

describe('rivulet watch', () => {
  it('ends immediately at a second SIGTERM, even if its last line is not read', async () => {
    const group = await openGroup()
    const watch = rivulet(['watch', '--group', 'g', '--json'], {
      RIVULET_BASE_URL: group.url,
      RIVULET_API_KEY: 'key_of_the_test',
    })
    await new Promise((resolve) => watch.child.stdout.once('data', resolve))
    watch.child.stdout.pause()

    watch.child.kill('SIGTERM')
    await group.isLeft
    watch.child.kill('SIGTERM')
    await new Promise((resolve) => watch.child.once('exit', resolve))
    watch.child.stdout.resume()
    const { code, stdout, stderr } = await watch.ended

    expect(code).toBe(143)
    expect(stdout).not.toContain('\n')
    expect(stderr).not.toContain('the last line was not written')
  })
})

/** A group without an end, with a run whose event exceeds all buffers between a command and its reader. */
async function openGroup() {
  const { promise: isLeft, resolve: leave } = Promise.withResolvers<void>()
  const url = await serve((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const name = /\/(events|runs)$/.exec(pathname)?.[1]
    if (name === undefined) {
      const status = {
        num_task_runs: 2,
        task_run_status_counts: { completed: 1, running: 1 },
        is_active: true,
      }
      return answer(response, { taskgroup_id: 'g', status, created_at: 'c' })
    }
    openStream(response)
    response.once('close', leave)
    if (name === 'runs') response.write(runFrame('g', 1, 16_000_000))
  })
  return { url, isLeft }
}
