import { jetstreamManager } from '@nats-io/jetstream'
import type { JetStreamManager, StreamConfig } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { LogServerError } from 'rivulet/log'
import { natsStore } from 'rivulet/log/nats'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { append, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

async function connected() {
  const nats = await connect({ servers: server.url })
  onTestFinished(() => nats.close())
  return { nats, jsm: await jetstreamManager(nats) }
}

async function limit(jsm: JetStreamManager, stream: string, config: Partial<StreamConfig>): Promise<void> {
  await jsm.streams.update(stream, config)
}

describe('a log whose streams are full', () => {
  it('is asked again at intervals, and goes on once there is room', async () => {
    const { nats, jsm } = await connected()
    const log = natsStore({ servers: server.url, name: 'full' })
    onTestFinished(() => log.close())
    const fence = await log.claim('stream')
    await append(log, fence, change('1'))
    await limit(jsm, 'rivulet_full_events', { max_msgs: 1 })
    const attempts: number[] = []
    const { promise: enough, resolve } = Promise.withResolvers<void>()
    nats.subscribe('rv.full.ev.>', {
      callback: () => {
        if (attempts.push(performance.now()) === 4) resolve()
      },
    })
    await nats.flush()
    // Longer than a message.
    const long = { ...change('2'), text: 'x'.repeat(1_200_000) }
    const appended = append(log, fence, long)
    await enough
    await limit(jsm, 'rivulet_full_events', { max_msgs: -1 })
    expect(await appended).toMatchObject({ entries: 1 })
    expect(await readAll(log)).toMatchObject([{ id: '1' }, long])
    const query = { subjects_filter: 'rv.full.pt.>' }
    const { subjects = {} } = (await jsm.streams.info('rivulet_full_state', query)).state
    expect(Object.values(subjects)).toEqual([2])
    const [first = Number.NaN, , , fourth = Number.NaN] = attempts
    expect(fourth - first).toBeGreaterThan(200)
  })

  it('gives up a claim as soon as there is room, also when that took too long for the call', async () => {
    const { nats, jsm } = await connected()
    const [one, two] = ['one', 'two'].map((owner) =>
      natsStore({ servers: server.url, name: 'claimed', owner }),
    )
    if (one === undefined || two === undefined) throw new Error('two were opened')
    onTestFinished(() => one.close())
    onTestFinished(() => two.close())
    const fence = await one.claim('stream')
    const waiting = two.claim('stream', { wait: new AbortController().signal })
    const { state } = await jsm.streams.info('rivulet_claimed_state')
    await limit(jsm, 'rivulet_claimed_state', { max_msgs: state.messages })
    const attempt = Promise.withResolvers<void>()
    nats.subscribe('rv.claimed.jr.>', { callback: () => attempt.resolve() })
    await nats.flush()
    const released = one.release(fence).catch((error: unknown) => error)
    await attempt.promise
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 31_000)
    expect(await released).toBeInstanceOf(LogServerError)
    clock.mockRestore()
    await limit(jsm, 'rivulet_claimed_state', { max_msgs: -1 })
    expect(await waiting).toMatchObject({ name: 'stream' })
  })

  it('refuses a webhook that can never be stored at once, while another one waits for room', async () => {
    const { jsm } = await connected()
    const log = natsStore({ servers: server.url, name: 'inbox' })
    onTestFinished(() => log.close())
    await log.claim('stream')
    const put = (id: string, json: string) => log.inbox.put({ id, timestamp: 1, payload: {} }, json)
    const { state } = await jsm.streams.info('rivulet_inbox_state')
    await limit(jsm, 'rivulet_inbox_state', { max_msgs: state.messages + 1, max_msg_size: 2_000 })
    // The others come while it is stored, so they are stored together.
    const stored = put('first', '{}')
    const waiting = put('small', '{}')
    const refused = await put('large', JSON.stringify({ text: 'x'.repeat(4_000) })).catch(
      (error: unknown) => error,
    )
    expect(refused).toBeInstanceOf(LogServerError)
    expect(refused).toMatchObject({ retryable: false })
    await limit(jsm, 'rivulet_inbox_state', { max_msgs: -1 })
    expect(await Promise.all([stored, waiting])).toEqual(['stored', 'stored'])
  })
})
