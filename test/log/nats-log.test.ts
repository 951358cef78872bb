import { once } from 'node:events'
import { createServer } from 'node:net'
import { inspect } from 'node:util'
import { openLog, LogServerError } from 'rivulet/log'
import { ArgumentError } from 'rivulet'
import { natsStore } from 'rivulet/log/nats'
import type { NatsStoreOptions } from 'rivulet/log/nats'
import { describe, expect, it } from 'vitest'

const SECRET = 'SUAMUCHSECRET'

/** Options as a caller without types may have them. */
function untyped(options: object): NatsStoreOptions {
  return Object.assign({ servers: 'nats://127.0.0.1:1', name: 'watch' }, options)
}

describe('natsStore', () => {
  it.each([
    ['servers', { servers: '' }],
    ['servers', { servers: [] }],
    ['servers', { servers: 'localhost:4222' }],
    ['servers', { servers: 'https://localhost:4222' }],
    ['servers', { servers: ['nats://a:4222', 5] }],
    ['servers', { servers: `nats://user:${SECRET}@localhost:4222` }],
    ['servers', { servers: `nats://${SECRET}@localhost:4222` }],
    ['servers', { servers: `nats://localhost:4222?token=${SECRET}` }],
    ['servers', { servers: `nats://localhost:4222#${SECRET}` }],
    ['servers', { servers: 'nats://localhost:4222/watch' }],
    ['name', { name: '' }],
    ['name', { name: 'a.b' }],
    ['name', { name: 'a b' }],
    ['name', { name: 'a'.repeat(65) }],
    ['credentials', { credentials: {} }],
    ['credentials', { credentials: { user: SECRET } }],
    ['credentials', { credentials: SECRET }],
    ['credentials', { credentials: { creds: SECRET } }],
    ['credentials', { credentials: { seed: SECRET } }],
    ['cerFile', { tls: { cerFile: 'a.pem' } }],
    ['partitions', { partitions: 0 }],
    ['partitions', { partitions: 1_001 }],
    ['replicas', { replicas: 6 }],
    ['lease', { lease: 999 }],
    ['create', { create: 'yes' }],
    ['owner', { owner: '' }],
    ['clock', { clock: 5 }],
    ['inbox.maxBytes', { inbox: { maxBytes: 0 } }],
    ['server', { server: 'nats://a:4222' }],
  ])('refuses a wrong %s, and shows no secret', (argument, options) => {
    let thrown: unknown
    try {
      natsStore(untyped(options))
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(ArgumentError)
    expect(thrown).toMatchObject({ argument })
    expect(JSON.stringify([inspect(thrown), thrown])).not.toContain(SECRET)
  })

  it.each([
    ['of TLS', { tls: { caFile: undefined, cert: undefined } }],
    ['beside others', { tls: undefined, credentials: undefined, inbox: undefined }],
  ])('takes an undefined option %s as absent', (_, options) => {
    expect(() => natsStore(untyped(options))).not.toThrow()
  })

  it('rejects at its opening where no server answers, in one sentence and without credentials', async () => {
    // A port on which nothing listens any more.
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port }: { port: number } = Object.assign({ port: 0 }, server.address())
    server.close()
    await once(server, 'close')
    const credentials = { user: 'rivulet', password: SECRET }
    const log = natsStore({ servers: `nats://127.0.0.1:${port}`, name: 'watch', credentials })
    const error = await openLog(log).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(LogServerError)
    expect(error).toMatchObject({
      retryable: true,
      message: expect.stringMatching(/^the log "watch" cannot be reached: /),
    })
    expect(String(error)).not.toContain(SECRET)
    await log.close()
  })
})
