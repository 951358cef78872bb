/* oxlint-disable no-await-in-loop -- attempts follow one another */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { WebhookPayload } from '../../../src/protocol/webhook.ts'
import { type Clock, ManualClock } from '../../../src/service/clock.ts'
import { openDatabase, transaction } from '../../../src/service/database.ts'
import { Faults } from '../../../src/service/faults/faults.ts'
import { DeliveringOutbox } from '../../../src/service/webhooks/delivery.ts'
import type { OutboxOptions } from '../../../src/service/webhooks/delivery.ts'
import { expectedSignature, startReceiver } from './receiver.ts'

const HOUR = 3_600_000

afterEach(() => {
  vi.useRealTimers()
})

/** A started outbox, with its own database by default. */
function startOutbox(options: Partial<OutboxOptions> & { readonly file?: string } = {}) {
  const { file = ':memory:', ...given } = options
  const clock = new ManualClock()
  const faults = new Faults()
  const database = openDatabase(file)
  const outbox = new DeliveringOutbox({ database, clock, faults, secrets: () => ['secret'], ...given })
  outbox.start()
  const stop = async () => {
    await outbox.close()
    if (database.isOpen) database.close()
  }
  onTestFinished(stop)
  return { outbox, clock, faults, database, stop }
}

async function temporaryFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'outbox-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return join(folder, 'service.db')
}

function completed(name: string): WebhookPayload {
  const timestamp = '2026-01-01T00:00:00.000Z'
  const event = { event_group_id: 'mevtgrp_1', timestamp }
  return { type: 'monitor.execution.completed', timestamp, data: { monitor_id: name, event } }
}

function names(received: readonly { readonly body: Buffer }[]): unknown[] {
  return received.map(({ body }) => JSON.parse(body.toString()).data.monitor_id)
}

describe('a webhook', () => {
  it('is posted as JSON with an id, the time and a signature over the exact bytes', async () => {
    const receiver = await startReceiver()
    const { outbox } = startOutbox()
    const before = Math.floor(Date.now() / 1000)

    outbox.post(receiver.url, completed('möbius'))
    await outbox.settled()

    const [hook, ...more] = receiver.received
    if (hook === undefined) throw new Error('nothing was posted')
    expect(more).toEqual([])
    expect(hook.method).toBe('POST')
    expect(hook.contentType).toBe('application/json')
    expect(hook.id).toMatch(/^whk_[0-9a-f]{32}$/)
    expect(hook.timestamp).toBeGreaterThanOrEqual(before)
    expect(hook.timestamp).toBeLessThanOrEqual(Date.now() / 1000)
    expect(hook.signatures).toEqual([expectedSignature('secret', hook)])
    expect(JSON.parse(hook.body.toString())).toEqual(completed('möbius'))
    expect(outbox.pending()).toBe(0)
  })

  it('has a signature for each secret that is current at the attempt', async () => {
    const receiver = await startReceiver((n) => (n === 1 ? 500 : 200))
    let secrets = ['old']
    const { outbox, clock } = startOutbox({ secrets: () => secrets })
    outbox.post(receiver.url, completed('m'))
    await outbox.settled()

    secrets = ['new', 'old']
    clock.advance(5_000)
    await outbox.settled()

    expect(receiver.received.map((hook) => hook.signatures)).toEqual([
      receiver.received.slice(0, 1).map((hook) => expectedSignature('old', hook)),
      receiver.received
        .slice(1)
        .flatMap((hook) => ['new', 'old'].map((secret) => expectedSignature(secret, hook))),
    ])
  })

  it('has the real time of each attempt, at any speed of the clock', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 })
    const receiver = await startReceiver((n) => (n === 1 ? 500 : 200))
    const { outbox, clock } = startOutbox()
    outbox.post(receiver.url, completed('m'))
    await outbox.settled()

    vi.setSystemTime(2_000_000)
    clock.advance(5_000)
    await outbox.settled()

    expect(receiver.received.map(({ timestamp }) => timestamp)).toEqual([1_000, 2_000])
  })

  it('has the same time in its header and its body, at any speed of the clock', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 })
    const receiver = await startReceiver()
    const fast = new ManualClock()
    const clock: Clock = {
      now: () => fast.now(),
      schedule: (delay, task) => fast.schedule(delay, task),
      realTime: new ManualClock(1_000_000),
    }
    const { outbox } = startOutbox({ clock })
    outbox.post(receiver.url, completed('m'))
    await outbox.settled()

    const sent = receiver.received.map(({ timestamp, body }) => {
      return [timestamp, JSON.parse(body.toString()).timestamp]
    })
    expect(sent).toEqual([[1_000, new Date(1_000_000).toISOString()]])
  })

  it('is not sent when its transaction is rolled back', async () => {
    const receiver = await startReceiver()
    const { outbox, database } = startOutbox()

    const work = () =>
      transaction(database, () => {
        outbox.post(receiver.url, completed('m'))
        throw new Error('undone')
      })

    expect(work).toThrow('undone')
    await outbox.settled()
    expect(receiver.received).toEqual([])
    expect(outbox.pending()).toBe(0)
  })

  it('is sent with all others of its transaction, at most 4 at a time to one receiver', async () => {
    let open = 0
    let most = 0
    const waiting: (() => void)[] = []
    const receiver = await startReceiver(async () => {
      open += 1
      most = Math.max(most, open)
      if (open === 4) for (const resume of waiting.splice(0)) resume()
      else if (receiver.received.length <= 16) await new Promise<void>((resume) => waiting.push(resume))
      open -= 1
      return 200
    })
    const { outbox, database } = startOutbox()

    transaction(database, () => {
      for (let n = 0; n < 20; n++) outbox.post(receiver.url, completed(`m${n}`))
    })
    await outbox.settled()

    expect(new Set(names(receiver.received)).size).toBe(20)
    expect(receiver.received).toHaveLength(20)
    expect(most).toBe(4)
  })

  it('does not wait for another receiver that never responds', async () => {
    const silent = await startReceiver(() => undefined)
    const healthy = Promise.withResolvers<void>()
    const receiver = await startReceiver(() => {
      healthy.resolve()
      return 200
    })
    const { outbox, database } = startOutbox()

    transaction(database, () => {
      for (let n = 0; n < 100; n++) outbox.post(`${silent.url}&n=${n}`, completed(`silent ${n}`))
      outbox.post(receiver.url, completed('healthy'))
    })
    await healthy.promise

    expect(names(receiver.received)).toEqual(['healthy'])
    expect(silent.received.length).toBeLessThanOrEqual(4)
  })
})

describe('a failed attempt', () => {
  it('is retried after 5, 10, 20 and 40 s, with the same id and the same bytes', async () => {
    const receiver = await startReceiver((n) => (n <= 4 ? 503 : 204))
    const { outbox, clock } = startOutbox()
    outbox.post(receiver.url, completed('m'))
    await outbox.settled()

    const delays: number[] = []
    while (clock.next !== undefined) {
      const delay = clock.next - clock.now()
      delays.push(delay)
      clock.advance(delay - 1)
      await outbox.settled()
      expect(receiver.received).toHaveLength(delays.length)
      clock.advance(1)
      await outbox.settled()
    }

    expect(delays).toEqual([5_000, 10_000, 20_000, 40_000])
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
    expect(new Set(receiver.received.map(({ body }) => body.toString())).size).toBe(1)
    expect(outbox.pending()).toBe(0)
  })

  it.each([
    ['a redirect, which is not followed', 307],
    ['404', 404],
    ['410', 410],
    ['500', 500],
  ])('is any response but 2xx: %s', async (_, status) => {
    const elsewhere = await startReceiver()
    const receiver = await startReceiver((_n, response) => {
      response.setHeader('location', elsewhere.url)
      return status
    })
    const { outbox, clock } = startOutbox()

    outbox.post(receiver.url, completed('m'))
    await outbox.settled()

    expect(clock.next).toBe(clock.now() + 5_000)
    expect(outbox.pending()).toBe(1)
    expect(elsewhere.received).toEqual([])
  })

  it('is one whose connection is cut before the response', async () => {
    const receiver = await startReceiver((n, response) => {
      if (n > 1) return 200
      response.socket?.destroy()
      return undefined
    })
    const { outbox, clock } = startOutbox()
    outbox.post(receiver.url, completed('m'))
    await outbox.settled()
    expect(outbox.pending()).toBe(1)

    clock.advance(5_000)
    await outbox.settled()

    expect(names(receiver.received)).toEqual(['m', 'm'])
    expect(outbox.pending()).toBe(0)
  })

  it('is one without a response before the timeout', async () => {
    const receiver = await startReceiver(() => undefined)
    const { outbox, clock } = startOutbox({ timeout: 20 })

    outbox.post(receiver.url, completed('m'))
    await outbox.settled()

    expect(clock.next).toBe(clock.now() + 5_000)
  })

  it('is one whose connection is refused', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const { outbox, clock } = startOutbox()

    outbox.post(`http://127.0.0.1:${port}/`, completed('m'))
    await outbox.settled()

    expect(clock.next).toBe(clock.now() + 5_000)
  })

  it('does not delay webhooks to other receivers', async () => {
    const broken = await startReceiver(() => 500)
    const sound = await startReceiver()
    const { outbox } = startOutbox()

    outbox.post(broken.url, completed('broken'))
    outbox.post(sound.url, completed('sound'))
    await outbox.settled()

    expect(names(sound.received)).toEqual(['sound'])
    expect(outbox.pending()).toBe(1)
  })

  it('is the last one if the next would be more than 48 hours after the creation', async () => {
    const receiver = await startReceiver(() => 500)
    const { outbox, clock } = startOutbox()
    const createdAt = clock.now()
    outbox.post(receiver.url, completed('m'))
    await outbox.settled()

    while (clock.next !== undefined) {
      clock.advance(clock.next - clock.now())
      await outbox.settled()
    }

    // 5 s doubled 15 times in a row add up to 45.5 hours; the sixteenth would end beyond the 48.
    expect(receiver.received).toHaveLength(16)
    expect(clock.now() - createdAt).toBe(5_000 * (2 ** 15 - 1))
    expect(outbox.pending()).toBe(0)
    expect(outbox.dead()).toMatchObject([
      { id: receiver.received[0]?.id, url: receiver.url, attempts: 16, lastFailure: 'answered with 500' },
    ])
  })
})

describe('an answer', () => {
  it('counts as soon as its status is known, for a body of any length', async () => {
    const receiver = await startReceiver((_, response) => {
      response.writeHead(200).write('x'.repeat(100_000))
    })
    const { outbox } = startOutbox()

    outbox.post(receiver.url, completed('m'))
    await outbox.settled()

    expect(outbox.pending()).toBe(0)
  })
})

describe('a restart', () => {
  it('continues the retries of the previous process', async () => {
    const file = await temporaryFile()
    const receiver = await startReceiver((n) => (n < 3 ? 500 : 200))
    const first = startOutbox({ file })
    first.outbox.post(receiver.url, completed('m'))
    await first.outbox.settled()
    first.clock.advance(5_000)
    await first.outbox.settled()
    await first.stop()

    const clock = new ManualClock(first.clock.now() + 4_000)
    const second = startOutbox({ file, clock })
    expect(clock.next).toBe(clock.now() + 6_000)
    clock.advance(6_000)
    await second.outbox.settled()

    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
    expect(new Set(receiver.received.map(({ body }) => body.toString())).size).toBe(1)
    expect(receiver.received).toHaveLength(3)
    expect(second.outbox.pending()).toBe(0)
  })

  it('sends stored webhooks without an attempt at once', async () => {
    const file = await temporaryFile()
    const receiver = await startReceiver()
    const database = openDatabase(file)
    const clock = new ManualClock()
    const unstarted = new DeliveringOutbox({
      database,
      clock,
      faults: new Faults(),
      secrets: () => ['secret'],
    })
    unstarted.post(receiver.url, completed('m'))
    await unstarted.close()
    database.close()
    expect(receiver.received).toEqual([])

    const { outbox } = startOutbox({ file })
    await outbox.settled()

    expect(names(receiver.received)).toEqual(['m'])
  })

  it('gives up webhooks that are older than 48 hours', async () => {
    const file = await temporaryFile()
    const receiver = await startReceiver(() => 500)
    const first = startOutbox({ file })
    first.outbox.post(receiver.url, completed('m'))
    await first.outbox.settled()
    await first.stop()

    const { outbox } = startOutbox({ file, clock: new ManualClock(first.clock.now() + 49 * HOUR) })
    await outbox.settled()

    expect(receiver.received).toHaveLength(1)
    expect(outbox.pending()).toBe(0)
    expect(outbox.dead()).toMatchObject([{ attempts: 1, lastFailure: 'answered with 500' }])
  })
})

describe('closing', () => {
  it('waits for a running attempt and stores its success', async () => {
    const finish = Promise.withResolvers<number>()
    const asked = Promise.withResolvers<void>()
    const receiver = await startReceiver(async () => {
      asked.resolve()
      return finish.promise
    })
    const { outbox } = startOutbox()
    outbox.post(receiver.url, completed('m'))
    await asked.promise

    const closed = outbox.close()
    finish.resolve(200)
    await closed

    expect(outbox.pending()).toBe(0)
  })

  it('aborts an attempt that takes too long, and does not count it', async () => {
    const file = await temporaryFile()
    const asked = Promise.withResolvers<void>()
    const receiver = await startReceiver((n) => {
      asked.resolve()
      return n === 1 ? undefined : 200
    })
    const first = startOutbox({ file })
    first.outbox.post(receiver.url, completed('m'))
    await asked.promise
    await first.stop()

    const { outbox, clock } = startOutbox({ file })
    await outbox.settled()

    expect(receiver.received).toHaveLength(2)
    expect(outbox.pending()).toBe(0)
    expect(clock.next).toBeUndefined()
  })
})

describe('the repeat fault', () => {
  it('delivers a webhook twice under the same id', async () => {
    const receiver = await startReceiver()
    const { outbox, faults } = startOutbox()
    faults.add({ kind: 'repeat', times: 1 })

    outbox.post(receiver.url, completed('a'))
    await outbox.settled()
    outbox.post(receiver.url, completed('b'))
    await outbox.settled()

    expect(names(receiver.received)).toEqual(['a', 'a', 'b'])
    expect(receiver.received[1]?.id).toBe(receiver.received[0]?.id)
  })

  it('does not count a refused duplicate as a failure', async () => {
    const receiver = await startReceiver((n) => (n === 1 ? 200 : 500))
    const { outbox, faults } = startOutbox()
    faults.add({ kind: 'repeat' })

    outbox.post(receiver.url, completed('a'))
    await outbox.settled()

    expect(receiver.received).toHaveLength(2)
    expect(outbox.pending()).toBe(0)
  })
})

describe('the reorder fault', () => {
  it('delays a webhook until the next one to the same receiver is delivered', async () => {
    const receiver = await startReceiver()
    const other = await startReceiver()
    const { outbox, faults } = startOutbox()
    faults.add({ kind: 'reorder', times: 1 })

    outbox.post(receiver.url, completed('a'))
    outbox.post(other.url, completed('x'))
    await outbox.settled()
    expect(receiver.received).toEqual([])
    outbox.post(receiver.url, completed('b'))
    await outbox.settled()

    expect(names(receiver.received)).toEqual(['b', 'a'])
    expect(names(other.received)).toEqual(['x'])
    expect(outbox.pending()).toBe(0)
  })

  it('swaps pairs while it is armed', async () => {
    const receiver = await startReceiver()
    const { outbox, faults } = startOutbox()
    faults.add({ kind: 'reorder' })

    for (const name of ['a', 'b', 'c', 'd']) {
      outbox.post(receiver.url, completed(name))
      await outbox.settled()
    }

    expect(names(receiver.received)).toEqual(['b', 'a', 'd', 'c'])
  })

  it('delivers a webhook after a minute without another one', async () => {
    const receiver = await startReceiver()
    const { outbox, faults, clock } = startOutbox()
    faults.add({ kind: 'reorder', times: 1 })
    outbox.post(receiver.url, completed('a'))
    await outbox.settled()

    clock.advance(60_000)
    await outbox.settled()

    expect(names(receiver.received)).toEqual(['a'])
  })

  it('loses nothing when the service stops while a webhook is delayed', async () => {
    const file = await temporaryFile()
    const receiver = await startReceiver()
    const first = startOutbox({ file })
    first.faults.add({ kind: 'reorder' })
    first.outbox.post(receiver.url, completed('a'))
    await first.outbox.settled()
    await first.stop()

    const { outbox } = startOutbox({ file })
    await outbox.settled()

    expect(names(receiver.received)).toEqual(['a'])
  })
})

describe('the delay fault', () => {
  it('delays a webhook once, and not those after it', async () => {
    const receiver = await startReceiver()
    const { outbox, faults, clock } = startOutbox()
    faults.add({ kind: 'delay', by: 30_000, times: 1 })
    outbox.post(receiver.url, completed('a'))
    await outbox.settled()
    outbox.post(receiver.url, completed('b'))
    await outbox.settled()
    clock.advance(29_999)
    await outbox.settled()
    const before = names(receiver.received)

    clock.advance(1)
    await outbox.settled()

    expect(before).toEqual(['b'])
    expect(names(receiver.received)).toEqual(['b', 'a'])
    expect(outbox.pending()).toBe(0)
  })

  it('delays each webhook only once', async () => {
    const receiver = await startReceiver((n) => (n === 1 ? 500 : 200))
    const { outbox, faults, clock } = startOutbox()
    faults.add({ kind: 'delay', by: 1_000 })
    for (let n = 0; n < 20; n++) outbox.post(receiver.url, completed(`m${n}`))
    await outbox.settled()
    const before = receiver.received.length

    clock.advance(1_000)
    await outbox.settled()
    clock.advance(5_000)
    await outbox.settled()

    expect(before).toBe(0)
    expect(receiver.received).toHaveLength(21)
    expect(outbox.pending()).toBe(0)
    expect(faults.struck).toEqual({ delay: 20 })
  })
})

describe('the lose fault', () => {
  it('drops a delivery, which a retry repeats', async () => {
    const receiver = await startReceiver()
    const { outbox, faults, clock } = startOutbox()
    faults.add({ kind: 'lose', times: 2 })
    outbox.post(receiver.url, completed('a'))
    await outbox.settled()
    clock.advance(5_000)
    await outbox.settled()
    const before = receiver.received.length

    clock.advance(10_000)
    await outbox.settled()

    expect(before).toBe(0)
    expect(names(receiver.received)).toEqual(['a'])
    expect(outbox.pending()).toBe(0)
  })
})

describe('the lose-answer fault', () => {
  it('delivers a webhook again, under the same id, that the receiver has accepted', async () => {
    const receiver = await startReceiver()
    const { outbox, faults, clock } = startOutbox()
    faults.add({ kind: 'lose-answer', times: 1 })
    outbox.post(receiver.url, completed('a'))
    await outbox.settled()
    const pending = outbox.pending()

    clock.advance(5_000)
    await outbox.settled()

    expect(pending).toBe(1)
    expect(names(receiver.received)).toEqual(['a', 'a'])
    expect(receiver.received[1]?.id).toBe(receiver.received[0]?.id)
    expect(outbox.pending()).toBe(0)
  })

  it('does not strike when the receiver refuses', async () => {
    const receiver = await startReceiver(() => 500)
    const { outbox, faults } = startOutbox()
    faults.add({ kind: 'lose-answer', times: 1 })
    outbox.post(receiver.url, completed('a'))
    await outbox.settled()
    expect(faults.struck).toEqual({})
  })
})

describe('a database that fails', () => {
  it('is reported, pauses delivery, and loses nothing', async () => {
    const receiver = await startReceiver()
    const onError = vi.fn<(error: unknown) => void>()
    const { outbox, database, clock } = startOutbox({ onError })
    outbox.post(receiver.url, completed('m'))
    database.exec(
      "CREATE TRIGGER broken BEFORE DELETE ON webhooks BEGIN SELECT raise(ABORT, 'disk full'); END",
    )
    await outbox.settled()
    expect(onError.mock.calls).toMatchObject([[{ message: 'disk full' }]])
    expect(receiver.received).toHaveLength(1)

    database.exec('DROP TRIGGER broken')
    clock.advance(5_000)
    await outbox.settled()

    expect(outbox.pending()).toBe(0)
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
  })
})
