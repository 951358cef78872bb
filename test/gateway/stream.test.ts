import { describe, expect, it, vi } from 'vitest'
import { openStream } from './client.ts'
import { served, setItem } from './fixture.ts'

describe('a stream of a gateway', () => {
  it('sends the rows, then what changes', async () => {
    const { append, url, token } = await served()
    await append(setItem('a', 'x', '1'), setItem('b', 'x', '2'))
    const stream = await openStream(url, await token(), [{ view: 'items', params: { list: 'a' } }])

    await stream.untilRows((model) => model.rows('items?list=a')['a/x'] !== undefined)
    await stream.until('current')
    await append(setItem('a', 'y', '3'), setItem('b', 'y', '4'), setItem('a', 'x', '5'))
    await stream.untilRows((model) => Object.keys(model.rows('items?list=a')).length === 2)

    expect(stream.frames[0]).toMatchObject({ name: 'open', data: { protocol: 1, heartbeat: 15_000 } })
    expect(stream.model.rows('items?list=a')).toEqual({
      'a/x': { value: '5', times: 2 },
      'a/y': { value: '3', times: 1 },
    })
  })

  it('sends heartbeats, with how far the views are behind', async () => {
    const { url, token } = await served({ heartbeat: 5 })
    const stream = await openStream(url, await token(), [{ view: 'everything' }])

    const { data } = await stream.until('heartbeat')

    expect(data.behind).toBe(0)
  })

  it('goes on without that while the log cannot say it, and has it again later', async () => {
    const { url, token, log, append } = await served({ heartbeat: 5 })
    const stats = vi.spyOn(log, 'stats').mockRejectedValue(new Error('the disk fails'))
    const stream = await openStream(url, await token(), [{ view: 'everything' }])

    const { data } = await stream.until('heartbeat')
    stats.mockRestore()
    await append(setItem('a', 'x', '1'))
    await stream.untilRows((model) => model.rows('everything')['a/x'] !== undefined)
    await stream.until('heartbeat', (frame) => frame.data.behind === 0)

    expect(data).toEqual({ now: expect.any(Number) })
  })

  it('sends heartbeats while the log does not answer', async () => {
    const { url, token, log } = await served({ heartbeat: 5 })
    const stats = vi.spyOn(log, 'stats').mockReturnValue(new Promise(() => {}))
    const stream = await openStream(url, await token(), [{ view: 'everything' }])

    const { data } = await stream.until('heartbeat')

    expect(data).toEqual({ now: expect.any(Number) })
    expect(stats).toHaveBeenCalledTimes(1)
  })

  it('says that it ends when the gateway is closed', async () => {
    const { url, token, gateway } = await served()
    const stream = await openStream(url, await token(), [{ view: 'everything' }])
    await stream.until('current')

    await gateway.close()

    expect((await stream.until('close')).data).toEqual({ reason: 'shutdown' })
    expect(await stream.next()).toBeUndefined()
    expect((await fetch(`${url}/stream`, { method: 'POST' })).status).toBe(503)
  })

  it('has the headers that keep proxies from buffering it', async () => {
    const { url, token } = await served()
    const { response } = await openStream(url, await token(), [{ view: 'everything' }])

    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    })
  })
})
