import { createServer, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { batchOf, NO_EVENTS, sseFrame } from '../../../src/http/server-sent-events.ts'
import { type EventFeed, streamEvents } from '../../../src/service/http/event-stream.ts'
import { ManualClock } from '../../../src/service/index.ts'

const EVENT = sseFrame({ id: '1', event: 'test', data: JSON.stringify({ text: 'x'.repeat(1_000) }) })

/** An endless feed, which counts its reads. */
class EndlessFeed implements EventFeed {
  asked = 0
  readonly ended = false

  next() {
    this.asked += 1
    return batchOf(Array.from({ length: 64 }, () => EVENT))
  }

  onMore() {
    return () => undefined
  }
}

describe('a stream of events', () => {
  it('stops reading the feed while its client does not read, and resumes when it does', async () => {
    const feed = new EndlessFeed()
    const { socket, outgoing } = await opened(feed)
    const response = await outgoing
    await settled(() => feed.asked)
    const whileStuck = feed.asked
    const held = response.writableLength

    socket.resume()
    await until(() => feed.asked > 2 * whileStuck)

    expect(whileStuck).toBeGreaterThan(0)
    // One batch is buffered here, however many there are; the rest is in the kernel's buffers.
    expect(held).toBeLessThan(2 * 64 * EVENT.length)
  })

  it('stops reading the feed when its client has disconnected', async () => {
    const feed = new EndlessFeed()
    const { socket, outgoing } = await opened(feed)
    const response = await outgoing
    const gone = new Promise((resolve) => response.on('close', resolve))
    socket.destroy()
    await gone
    const asked = feed.asked
    await settled(() => feed.asked)
    expect(feed.asked).toBe(asked)
  })

  it('reads the feed once per turn of the event loop', async () => {
    let more: () => void = () => undefined
    const next = vi.fn<EventFeed['next']>(() => NO_EVENTS)
    const feed: EventFeed = { ended: false, next, onMore: (listener) => ((more = listener), () => undefined) }
    const { outgoing } = await opened(feed)
    await outgoing
    await until(() => next.mock.calls.length === 1)
    for (let n = 0; n < 100; n++) more()
    await settled(() => next.mock.calls.length)
    expect(next).toHaveBeenCalledTimes(2)
  })

  it('sends an error event and ends when its feed fails, and calls onError', async () => {
    const heard: unknown[] = []
    const broken = new Error('secret of the inside')
    const feed: EventFeed = {
      ended: false,
      next: () => {
        throw broken
      },
      onMore: () => () => undefined,
    }
    const { socket } = await opened(feed, (error, ref_id) => heard.push([error, ref_id]))
    const text = await everything(socket)
    const [, ref_id] = /"ref_id":"([^"]+)"/.exec(text) ?? []
    expect(text).toMatch(/event: error\ndata: \{"type":"error"/)
    expect(text).not.toContain('secret')
    expect(text).toMatch(/0\r\n\r\n$/)
    expect(heard).toEqual([[broken, ref_id]])
  })

  it('sends a comment from time to time, in real time', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const feed: EventFeed = { ended: false, next: () => NO_EVENTS, onMore: () => () => undefined }
    const { socket, outgoing } = await opened(feed)
    await outgoing
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.resume()
    vi.advanceTimersByTime(30_000)
    await until(() => text.split(': still here\n\n').length === 3)
    expect(text).not.toContain('event:')
  })
})

/** A stream of the feed to a client that does not read yet. */
async function opened(feed: EventFeed, onError: (error: unknown, ref_id: string) => void = () => undefined) {
  const options = { clock: new ManualClock(), duration: 3_600_000, onError }
  const outgoing = Promise.withResolvers<ServerResponse>()
  const server = createServer((_, response) => {
    streamEvents(response, feed, options)
    outgoing.resolve(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  const socket = connect(address.port, '127.0.0.1')
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  return { socket, outgoing: outgoing.promise }
}

async function everything(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

/** Resolves when a value has stayed the same for many turns of the event loop. */
async function settled(value: () => number): Promise<void> {
  let last = value()
  for (let same = 0; same < 500; same++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (value() === last) continue
    last = value()
    same = 0
  }
}
