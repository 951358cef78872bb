import { setImmediate as nextTurn } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { deliver, iterate, ofType } from 'rivulet/operators'
import { EMPTY, lastValueFrom, map, merge } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { GroupServer } from '../../bench/slow-consumer/group-server.ts'
import { serve } from '../support/serve.ts'

const EVENTS = 5_000
/** So large that the buffers of both sockets, some MB of the operating system's, have room for a part of the stream only. */
const BYTES = 8_000

/** A group of finished runs, and how far its server gets ahead of who handles them. */
async function openGroup() {
  const server = new GroupServer({ events: EVENTS, bytes: BYTES })
  const client = createClient({ baseUrl: await serve(server.listener), apiKey: 'key' })
  const handled: string[] = []
  let ahead = 0
  const handle = async ({ id }: { readonly id: string }) => {
    ahead = Math.max(ahead, server.written - handled.length)
    // The server goes on meanwhile, if it can.
    await nextTurn()
    handled.push(id)
  }
  const runs = client.taskGroups.runs('g', { include_output: true })
  return { server, runs, handle, handled, ahead: () => ahead }
}

const all = Array.from({ length: EVENTS }, (_, n) => `trun_g_${String(n + 1).padStart(8, '0')}:completed`)

describe('a slow consumer', () => {
  it('holds the server back with deliver, through merge and synchronous operators, and gets every event', async () => {
    const { server, runs, handle, handled, ahead } = await openGroup()
    const events = merge(runs, EMPTY).pipe(
      ofType('task_run.state'),
      map(({ id }) => ({ id })),
      deliver(handle, { concurrency: 2, highWaterMark: 4 }),
    )

    await lastValueFrom(events)

    expect(handled).toEqual(all)
    expect(server.heldBack).toBeGreaterThan(0)
    expect(ahead()).toBeLessThan(EVENTS / 2)
  })

  it('holds the server back with for await', async () => {
    const { server, runs, handle, handled, ahead } = await openGroup()

    for await (const event of iterate(runs, { highWaterMark: 4 })) await handle(event)

    expect(handled).toEqual(all)
    expect(server.heldBack).toBeGreaterThan(0)
    expect(ahead()).toBeLessThan(EVENTS / 2)
  })
})
