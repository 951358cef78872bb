import type { ServerResponse } from 'node:http'
import { nodeListener } from 'rivulet/gateway'
import { expect, it } from 'vitest'
import { serve } from '../support/serve.ts'
import { openStream } from './client.ts'
import { held } from './fixture.ts'
import { stalledClient } from './stalled-client.ts'

const EVERYTHING = [{ view: 'everything' }]

/** A row is about one page of changes, which has 64 KiB. */
const ROW = 60_000

/** The page that a socket is being sent, the next one, and what Node buffers before it says that a socket is full. */
const BOUND = 3 * 64 * 1024

it('a client that does not read costs two pages, however many changes follow', async () => {
  const stalled = 4
  const { set, gateway, token } = await held()
  const responses: ServerResponse[] = []
  const listener = nodeListener(gateway)
  const server = await serve((incoming, outgoing) => {
    responses.push(outgoing)
    listener(incoming, outgoing)
  })
  let sent = 0
  gateway.observe({ sent: (bytes) => (sent += bytes) })
  const own = await token()
  for (let n = 0; n < stalled; n++) await stalledClient(server, own, EVERYTHING)
  // It goes through no socket, so that `responses` are those of the others.
  const reader = await openStream('http://localhost/live', own, EVERYTHING, { fetcher: gateway })
  await reader.until('current')
  /** What the gateway has made for those that do not read, and the system has not taken. */
  const heldBytes = () => sent - read() - responses.reduce((sum, each) => sum + flushed(each), 0)
  const read = () => reader.bytes
  const most = { held: 0, buffered: 0 }

  for (let n = 1; n <= 200; n++) {
    await set({ [`r${n}`]: `${n}:${'x'.repeat(ROW)}` })
    await reader.untilRows((model) => model.rows('everything')[`r${n}`] !== undefined)
    most.held = Math.max(most.held, heldBytes())
    most.buffered = Math.max(most.buffered, ...responses.map((each) => each.writableLength))
  }

  expect(responses).toHaveLength(stalled)
  expect(most.buffered).toBeGreaterThan(ROW)
  expect(most.buffered).toBeLessThan(BOUND)
  expect(most.held / stalled).toBeLessThan(BOUND)
  // Their sockets are full.
  expect((sent - read()) / stalled).toBeLessThan(200 * ROW * 0.9)
})

/** How much of a response the system has taken, in bytes. */
function flushed({ socket, writableLength }: ServerResponse): number {
  return (socket?.bytesWritten ?? 0) - writableLength
}
