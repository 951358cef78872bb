import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { LogServerError } from '../../src/log/errors.ts'
import { natsLog } from '../../src/log/nats-log.ts'
import type { NatsLogOptions } from '../../src/log/nats-log.ts'
import { append } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

/** What the first call of a log rejects with; its position where it does not. */
async function opened(options: Partial<NatsLogOptions>): Promise<unknown> {
  const log = natsLog({ servers: server.url, name: 'watch', ...options })
  onTestFinished(() => log.close())
  return log.positionAt('end').catch((error: unknown) => error)
}

describe('the connection of a log to its server', () => {
  it('sends nothing without TLS where the URL of a server has tls:', async () => {
    const secure = server.url.replace('nats:', 'tls:')
    for (const servers of [secure, [server.url, secure]]) {
      const error = await opened({ servers })
      expect(error).toBeInstanceOf(LogServerError)
      expect(error).toMatchObject({ message: expect.stringContaining("does not support 'tls'") })
    }
  })

  it('reports a host that has no address', async () => {
    const missing = await opened({ servers: 'nats://no-such-host.invalid:4222' })
    expect(missing).toBeInstanceOf(LogServerError)
    expect(missing).toMatchObject({
      message: expect.stringContaining('no-such-host.invalid'),
      retryable: true,
    })
  })

  it('refuses a server whose messages are too small', async () => {
    const small = await NatsServer.start('max_payload: 32KB')
    onTestFinished(() => small.remove())
    const error = await opened({ servers: small.url })
    expect(error).toBeInstanceOf(LogServerError)
    expect(error).toMatchObject({ message: expect.stringContaining('max_payload'), retryable: false })
  })

  it('is there again once the server accepts its credentials again', async () => {
    const config = (password: string) =>
      `authorization { users = [{ user: rivulet, password: ${password} }] }`
    const guarded = await NatsServer.start(config('first'))
    onTestFinished(() => guarded.remove())
    const sign = { user: 'rivulet', password: 'first' }
    const log = natsLog({ servers: guarded.url, name: 'watch', credentials: sign })
    await log.claim('one')
    // As the client is by default: it gives up once it was refused twice.
    const other = await connect({
      servers: guarded.url,
      user: sign.user,
      pass: sign.password,
      reconnectTimeWait: 300,
    })
    await guarded.kill()
    await guarded.configure(config('second'))
    await guarded.resume()
    const claimed = log.claim('two').catch((error: unknown) => error)
    await other.closed()
    await guarded.kill()
    await guarded.configure(config('first'))
    await guarded.resume()
    expect(await claimed).toMatchObject({ name: 'two' })
    await log.close()
  })

  it('waits for a server that does not answer, also to read', async () => {
    const slow = await NatsServer.start()
    onTestFinished(() => slow.remove())
    const log = natsLog({ servers: slow.url, name: 'watch' })
    onTestFinished(() => log.close())
    const fence = await log.claim('stream')
    await append(log, fence, change('1'))
    const start = await log.positionAt('start')
    const other = await connect({ servers: slow.url })
    onTestFinished(() => other.close())
    // More patient than one request of the log.
    const jsm = await jetstreamManager(other, { timeout: 2_500 })
    const disconnected = (async () => {
      for await (const { type } of other.status()) if (type === 'disconnect') return
    })()
    await slow.kill()
    await disconnected
    const results = Promise.all([
      log.read(start, { limit: 5 }),
      log.positionAt('end'),
      log.positionAt({ time: 0 }),
    ])
    results.catch(() => {})
    await expect(jsm.streams.info('rivulet_watch_events')).rejects.toThrow('timeout')
    await slow.resume()
    const [page, end, first] = await results
    expect(page.entries.map(({ id }) => id)).toEqual(['1'])
    expect([end, first]).toEqual([page.position, start])
  })
})
