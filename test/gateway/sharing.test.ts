import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import type { Grant } from 'rivulet/gateway'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openStream } from './client.ts'
import { everything, held, processed, served, setItem } from './fixture.ts'
import { stalledClient } from './stalled-client.ts'

const EVERYTHING = [{ view: 'everything' }]

/** Counts what a gateway encodes and sends. */
function counted(gateway: Awaited<ReturnType<typeof served>>['gateway']) {
  const counts = { encoded: 0, sent: 0 }
  gateway.observe({
    encoded: () => (counts.encoded += 1),
    sent: (bytes) => (counts.sent += bytes),
  })
  return counts
}

describe('changes of a view', () => {
  it('are encoded once for all who see the same of them, and once more for each other grant', async () => {
    const { gateway, url, append, store } = await served({ maxConnections: 1_000 })
    const grants: Grant[] = [
      { sub: 'a', views: ['everything'], sources: ['*'] },
      { sub: 'b', views: ['everything'], sources: ['*'], omit: ['times'] },
      { sub: 'c', views: ['everything'], sources: ['/v1/monitors/a'] },
    ]
    const streams = await Promise.all(
      Array.from({ length: 30 }, async (_, at) => {
        const grant = grants[at % grants.length] ?? {}
        return openStream(url, await gateway.grant({ sub: 'd', ...grant }), EVERYTHING)
      }),
    )
    for (const each of streams) await each.until('current')
    const counts = counted(gateway)

    await append(setItem('a', 'x', '1'), setItem('b', 'x', '2'))
    await processed(store)
    for (const each of streams) await each.untilRows((model) => model.rows('everything')['a/x'] !== undefined)

    expect(counts.encoded).toBe(3)
    const [whole, without, some] = streams.map(({ model }) => model.rows('everything'))
    expect(whole).toEqual({ 'a/x': { value: '1', times: 1 }, 'b/x': { value: '2', times: 1 } })
    expect(without).toEqual({ 'a/x': { value: '1' }, 'b/x': { value: '2' } })
    expect(some).toEqual({ 'a/x': { value: '1', times: 1 } })
  })

  it('come after a snapshot that clients share which come together', async () => {
    const { gateway, url, append, store, token } = await served({ maxConnections: 1_000 })
    await append(setItem('a', 'x', '1'), setItem('b', 'x', '2'))
    await processed(store)
    const counts = counted(gateway)
    const own = await token()
    const first = await openStream(url, own, EVERYTHING)
    await first.until('current')
    const streams = await Promise.all(Array.from({ length: 20 }, () => openStream(url, own, EVERYTHING)))
    for (const each of streams) await each.until('current')

    expect(counts.encoded).toBe(1)
    await append(setItem('a', 'x', '3'))
    for (const each of streams) {
      await each.untilRows((model) => Object(model.rows('everything')['a/x']).value === '3')
      expect(each.model.rows('everything')['b/x']).toEqual({ value: '2', times: 1 })
    }
    expect(counts.encoded).toBe(2)
  })

  it('that a client does not see move its position, which comes with the next heartbeat', async () => {
    const { gateway, url, append, store } = await served({ heartbeat: 20 })
    const token = await gateway.grant({ sub: 'c', views: ['everything'], sources: ['/v1/monitors/a'] })
    const stream = await openStream(url, token, EVERYTHING)
    await stream.until('current')
    const before = stream.model.positions.get('everything')

    await append(setItem('b', 'x', '2'))
    await processed(store)
    const { data } = await stream.until('position')

    expect(data.position).not.toBe(before)
    expect((await stream.until('heartbeat')).data.behind).toBe(0)
    expect(stream.model.rows('everything')).toEqual({})
    const resumed = await openStream(url, token, [{ view: 'everything', after: data.position }])
    await resumed.until('current')
    expect(resumed.frames.map(({ name }) => name)).toEqual(['open', 'current'])
  })
})

describe('a client that does not read', () => {
  it('is sent no more than its socket takes, does not delay the others, and gets all of it once it reads', async () => {
    const { set, url, token } = await held()
    const own = await token()
    const others = await openStream(url, own, EVERYTHING)
    await others.until('current')
    const slow = await stalledClient(url, own, EVERYTHING)
    // 24 MB, more than the buffers of a socket take.
    for (let n = 0; n < 800; n++) {
      await set({ [`r${n % 40}`]: `${n}:${'x'.repeat(30_000)}` })
      await others.untilRows((model) => String(model.rows('everything')[`r${n % 40}`]).startsWith(`${n}:`))
    }
    const received: string[] = []
    slow.setEncoding('utf8').on('data', (text: string) => received.push(text))
    slow.resume()
    while (!received.join('').includes('799:x')) await turn()

    // The states between were replaced before the client took them.
    expect(received.join('').length).toBeLessThan(16 * 1024 * 1024)
    for (let n = 760; n < 800; n++) expect(received.join('')).toContain(`"${n}:x`)
  })

  it('is cut off when the gateway has ended its stream and it does not take the end', async () => {
    const { append, url, token, gateway } = await served({ views: { everything } })
    const slow = await stalledClient(url, await token(), EVERYTHING)
    const counts = counted(gateway)
    // Until its socket takes no more.
    for (let n = 0, before = -1; before !== counts.sent || n < 100; n++) {
      before = counts.sent
      await append(setItem('a', String(n), 'x'.repeat(60_000)))
      for (let at = 0; at < 20; at++) await turn()
    }
    const closed = once(slow, 'close')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())

    await gateway.close()
    await vi.advanceTimersByTimeAsync(5_000)
    let text = ''
    slow.setEncoding('utf8').on('data', (part: string) => (text += part.slice(-100)))
    slow.resume()
    await closed

    expect(text).not.toContain('event: close')
  })
})
