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
/** So large that the buffers of both sockets, some MB of the operating system's, have room for a part of the stream only. */
const BYTES = 8_000
/** What this process may hold of them: the queue, what is in flight, and what was read from the socket at once. */
const MOST_HELD = 64

/** A group of finished runs, and how far its server and the source that reads it get ahead of who handles them. */
async function openGroup() {
  const server = new GroupServer({ events: EVENTS, bytes: BYTES })
  const client = createClient({ baseUrl: await serve(server.listener), apiKey: 'key' })
  const handled: string[] = []
  let ahead = 0
  let told = 0
  let held = 0
  const handle = async ({ id }: { readonly id: string }) => {
    ahead = Math.max(ahead, server.written - handled.length)
    // The server goes on meanwhile, if it can.
    await nextTurn()
    handled.push(id)
  }
  const runs = client.taskGroups.runs('g', { include_output: true }).pipe(
    tap(() => {
      told += 1
      held = Math.max(held, told - handled.length)
    }),
  )
  return { server, runs, handle, handled, ahead: () => ahead, held: () => held }
}

const all = Array.from({ length: EVENTS }, (_, n) => `trun_g_${String(n + 1).padStart(8, '0')}:completed`)

describe('a slow consumer', () => {
  it('holds the server back with deliver, through merge and synchronous operators, and gets every event', async () => {
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

  it('holds the server back with for await', async () => {
    const { server, runs, handle, handled, ahead, held } = await openGroup()

    for await (const event of iterate(runs, { highWaterMark: 4 })) await handle(event)

    expect(handled).toEqual(all)
    expect(server.heldBack).toBeGreaterThan(0)
    expect(ahead()).toBeLessThan(EVENTS / 2)
    expect(held()).toBeLessThanOrEqual(MOST_HELD)
  })

  it('is measured by a program that handles every event, and fails above its limit', async () => {
    const { code, stdout, stderr } = await measure('--events', '4000', '--limit', '0', '--json')

    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^slow-consumer: it took [\d.]+ MB over the idle process, which is not below 0 MB$/m,
    )
    expect(JSON.parse(stdout)).toMatchObject({ slow_consumer: { events: 4_000, handled: 4_000 } })
  })
})

/** Runs the program that measures; its exit code and what it said. */
async function measure(...args: readonly string[]) {
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const program = ['--conditions=rivulet-source', '--expose-gc', 'bench/slow-consumer.ts', ...args]
  const run = promisify(execFile)(process.execPath, program, { signal: over.signal })
  return run.then(
    (said) => ({ code: 0, ...said }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      stdout,
      stderr,
    }),
  )
}
