import { execFile } from 'node:child_process'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createClient } from 'rivulet'
import { deliver, iterate, ofType } from 'rivulet/operators'
import { EMPTY, lastValueFrom, map, merge, tap } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { GroupServer } from '../../bench/slow-consumer/group-server.ts'
import { serve } from '../support/serve.ts'

const EVENTS = 5_000
/** So large that the buffers of both sockets, some MB in the operating system, hold only a part of the stream. */
const BYTES = 8_000
/** The most events in this process: the queue, those in flight, and those of one read from the socket. */
const MOST_HELD = 64

/** A group of finished runs, and how far its server and its source get ahead of the handler. */
async function openGroup() {
  const server = new GroupServer({ events: EVENTS, bytes: BYTES })
  const client = createClient({ baseUrl: await serve(server.listener), apiKey: 'key' })
  const handled: string[] = []
  let ahead = 0
  let emitted = 0
  let held = 0
  const handle = async ({ id }: { readonly id: string }) => {
    ahead = Math.max(ahead, server.written - handled.length)
    // The server continues meanwhile, if it can.
    await nextTurn()
    handled.push(id)
  }
  const runs = client.taskGroups.runs('g', { include_output: true }).pipe(
    tap(() => {
      emitted += 1
      held = Math.max(held, emitted - handled.length)
    }),
  )
  return { server, runs, handle, handled, ahead: () => ahead, held: () => held }
}

const all = Array.from({ length: EVENTS }, (_, n) => `trun_g_${String(n + 1).padStart(8, '0')}:completed`)

describe('a slow consumer', () => {
  it('pauses the server with deliver, through merge and synchronous operators, and receives every event', async () => {
    const { server, runs, handle, handled, ahead, held } = await openGroup()
    const events = merge(runs, EMPTY).pipe(
      ofType('task_run.state'),
      map(({ id }) => ({ id })),
      deliver(handle, { concurrency: 2, highWaterMark: 4 }),
    )

    await lastValueFrom(events)

    expect(handled).toEqual(all)
    expect(server.heldBack).toBeGreaterThan(0)
    expect(ahead()).toBeLessThan(EVENTS / 2)
    expect(held()).toBeLessThanOrEqual(MOST_HELD)
  })

  it('pauses the server with for await', async () => {
    const { server, runs, handle, handled, ahead, held } = await openGroup()

    for await (const event of iterate(runs, { highWaterMark: 4 })) await handle(event)

    expect(handled).toEqual(all)
    expect(server.heldBack).toBeGreaterThan(0)
    expect(ahead()).toBeLessThan(EVENTS / 2)
    expect(held()).toBeLessThanOrEqual(MOST_HELD)
  })

  it('is measured by a program that handles every event and fails above its limit', async () => {
    const { code, stdout, stderr } = await measure('--events', '4000', '--limit', '0', '--json')

    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^slow-consumer: it took [\d.]+ MB over the idle process, which is not below 0 MB$/m,
    )
    expect(JSON.parse(stdout)).toMatchObject({ slow_consumer: { events: 4_000, handled: 4_000 } })
  })
})

/** Runs the measuring program. Resolves with its exit code and output. */
async function measure(...args: readonly string[]) {
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const program = ['--conditions=rivulet-source', '--expose-gc', 'bench/slow-consumer.ts', ...args]
  const run = promisify(execFile)(process.execPath, program, { signal: over.signal })
  return run.then(
    (output) => ({ code: 0, ...output }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      stdout,
      stderr,
    }),
  )
}
