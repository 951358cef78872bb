import { afterAll, beforeAll, expect, it } from 'vitest'
import { FencedError } from '../../src/log/errors.ts'
import { natsLog } from '../../src/log/nats.ts'
import { append, idsOf, readAll } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { LossyProxy } from './nats/lossy-proxy.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

it('appends nothing after the owner that has overtaken it, whose entries it was going to precede', async () => {
  const proxy = await LossyProxy.start(server.port)
  const settings = { name: 'overtaken', lease: 1_000 }
  const one = natsLog({ ...settings, servers: proxy.url, owner: 'one' })
  const other = natsLog({ ...settings, servers: server.url, owner: 'other' })
  try {
    const fence = await one.claim('stream')
    await append(one, fence, change('1'))
    const { reached, release } = proxy.hold('rv.overtaken.ev.')
    const late = append(one, fence, change('2')).catch((error: unknown) => error)
    await reached
    // Its lease runs out, since its renewals are held up too.
    const next = await other.claim('stream', { wait: new AbortController().signal })
    await append(other, next, change('3'))
    release()

    expect(await late).toBeInstanceOf(FencedError)
    expect(idsOf(await readAll(other))).toEqual(['1', '3'])
  } finally {
    await one.close()
    await other.close()
    proxy.close()
  }
})
