import { inspect } from 'node:util'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { LogServerError } from '../../src/log/errors.ts'
import { Connection } from '../../src/log/nats/server/connection.ts'
import { natsStore } from '../../src/log/nats/index.ts'
import type { NatsStoreOptions } from '../../src/log/nats/index.ts'
import { append } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { NatsServer } from './nats/server.ts'

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

/** What the first call of a log rejects with; its position where it does not. */
async function opened(options: Partial<NatsStoreOptions>): Promise<unknown> {
  const log = natsStore({ servers: server.url, name: 'watch', ...options })
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
    const log = natsStore({ servers: guarded.url, name: 'watch', credentials: sign })
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

  it('reports what a server says that does not accept it any more, and not its credentials', async () => {
    const config = (password: string) =>
      `authorization { users = [{ user: rivulet, password: ${password} }] }`
    const guarded = await NatsServer.start(config('first-secret'))
    onTestFinished(() => guarded.remove())
    const connection = await Connection.open({
      client: { servers: guarded.url, user: 'rivulet', pass: 'first-secret' },
      log: 'watch',
      partitions: 1,
      replicas: undefined,
      lease: 10_000,
    })
    onTestFinished(() => connection.close())
    const unanswered = new LogServerError('the log', 'cannot be reached', { retryable: true })
    expect(connection.refusal.explain('the log', unanswered)).toBe(unanswered)
    const until = async (type: string) => {
      for await (const status of connection.nats.status()) if (status.type === type) return
    }
    const refused = until('error')
    await guarded.kill()
    await guarded.configure(config('second-secret'))
    await guarded.resume()
    await refused
    const error = connection.refusal.explain('the log', unanswered)
    expect(error).toBeInstanceOf(LogServerError)
    expect(error).toMatchObject({
      message: 'the log was refused by its server: Authorization Violation',
      retryable: true,
    })
    expect(inspect(error)).not.toContain('secret')
    const accepted = until('reconnect')
    await guarded.kill()
    await guarded.configure(config('first-secret'))
    await guarded.resume()
    await accepted
    expect(connection.refusal.explain('the log', unanswered)).toBe(unanswered)
  })

  it('opens only a log that is there, where it is not to be created', async () => {
    const error = await opened({ name: 'missing', create: false })
    expect(error).toBeInstanceOf(LogServerError)
    expect(error).toMatchObject({ message: expect.stringContaining('does not exist'), retryable: false })
    const nats = await connect({ servers: server.url })
    onTestFinished(() => nats.close())
    const streams = await (await jetstreamManager(nats)).streams.names().next()
    expect(streams.filter((name) => name.includes('missing'))).toEqual([])
    const end = await opened({ name: 'there' })
    expect(await opened({ name: 'there', create: false })).toBe(end)
  })

  it('waits for a server that does not answer, also to read', async () => {
    const slow = await NatsServer.start()
    onTestFinished(() => slow.remove())
    const log = natsStore({ servers: slow.url, name: 'watch' })
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
