import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { LogServerError } from '../../src/log/errors.ts'
import { natsLog } from '../../src/log/nats-log.ts'
import type { NatsLogOptions } from '../../src/log/nats-log.ts'
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
})
