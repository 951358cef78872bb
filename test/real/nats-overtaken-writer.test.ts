import { FencedError } from 'rivulet/log'
import { natsStore } from 'rivulet/log/nats'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ResearchEvent } from 'rivulet'
import { append, idsOf, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { LossyProxy } from './nats/lossy-proxy.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

it.each([
  { of: 'entries', before: ['1'] },
  { of: 'no entries', before: [] },
])('appends nothing after the owner that has overtaken it, to a source of $of', async ({ before }) => {
  const proxy = await LossyProxy.start(server.port)
  const name = `overtaken-${before.length}`
  const one = natsStore({ name, lease: 1_000, servers: proxy.url, owner: 'one' })
  const other = natsStore({ name, lease: 1_000, servers: server.url, owner: 'other' })
  try {
    const fence = await one.claim('stream')
    await append(one, fence, ...before.map((id) => change(id)))
    const { reached, release } = proxy.hold(`rv.${name}.ev.`)
    const late = append(one, fence, change('2')).catch((error: unknown) => error)
    await reached
    // Its lease runs out, since its renewals are held up too.
    const next = await other.claim('stream', { wait: new AbortController().signal })
    await append(other, next, change('3'))
    release()

    expect(await late).toBeInstanceOf(FencedError)
    expect(idsOf(await readAll(other))).toEqual([...before, '3'])
  } finally {
    await one.close()
    await other.close()
    proxy.close()
  }
})

describe('a writer that is held up within an append, while another one appends the same event and it is deleted', () => {
  /** Holds up a write of the first writer. @param nth Which one of the append it is. */
  async function held(name: string, { before, late: event, nth }: Held) {
    const proxy = await LossyProxy.start(server.port)
    const one = natsStore({ name, servers: proxy.url, owner: 'one' })
    const other = natsStore({ name, servers: server.url, owner: 'other' })
    onTestFinished(async () => {
      await one.close()
      await other.close()
      proxy.close()
    })
    const [fence, otherFence] = [await one.claim('one'), await other.claim('other')]
    await append(other, otherFence, ...before)
    let { reached, release } = proxy.hold(`rv.${name}.ev.`)
    const late = append(one, fence, event)
    await reached
    for (let n = 1; n < nth; n++) {
      const next = proxy.hold(`rv.${name}.ev.`)
      release()
      ;({ reached, release } = next)
      await reached
    }
    await append(other, otherFence, event)
    return { other, late, release }
  }

  it.each([1, 2])(
    'does not append it again to a source without entries, held up at write %i',
    async (nth) => {
      const { other, late, release } = await held(`trimmed-${nth}`, { before: [], late: change('late'), nth })
      await other.retention.trim({ limit: 10 })
      release()

      expect(await late).toMatchObject({ entries: 0, duplicates: 1 })
      expect(await readAll(other)).toEqual([])
    },
  )

  it('does not append it again after the one that it knows as the last, where it was forgotten', async () => {
    const cause = { process: 'p', source: '/v1/monitors/gone', id: '1', revision: 1, hops: 1 }
    const event = { ...change('late'), via: 'process' as const, cause }
    const { other, late, release } = await held('forgotten', { before: [change('1')], late: event, nth: 1 })
    expect(await other.retention.forget(cause.source)).toBe(1)
    release()

    expect(await late).toMatchObject({ entries: 0, duplicates: 1 })
    expect(idsOf(await readAll(other))).toEqual(['1'])
  })
})

/** What a writer is held up at. */
interface Held {
  /** The entries of the source before. */
  readonly before: readonly ResearchEvent[]
  /** The event that both append. */
  readonly late: ResearchEvent
  readonly nth: number
}

it('does not believe a server that is 40 days ahead of the last entry, where an entry after that was forgotten', async () => {
  const days = 40 * 24 * 3_600_000
  const before = natsStore({ name: 'clock', servers: server.url, clock: () => Date.now() - days })
  await append(before, await before.claim('stream'), change('1'))
  await append(before, await before.claim('other'), { ...change('2'), source: '/v1/monitors/other' })
  await before.retention.forget('/v1/monitors/other')
  await before.close()
  const log = natsStore({ name: 'clock', servers: server.url })
  onTestFinished(() => log.close())
  await append(log, await log.claim('stream'), change('3'))

  const [first, last] = await readAll(log)
  expect((last?.recorded ?? Infinity) - (first?.recorded ?? 0)).toBeLessThan(days / 2)
  expect(await log.retention.usage()).toMatchObject({ isTimeCertain: false })
})
