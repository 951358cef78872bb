import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { memoryStore } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { sqliteStore } from 'rivulet/log/sqlite'
import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Access } from '../../../src/gateway/access/access.ts'
import type { Authority } from '../../../src/gateway/access/authority.ts'
import { folderOf } from '../../cli/command.ts'
import { accessOf, authority, bearing, codeOf, GRANT, logOf } from './scene.ts'

/** The stores of one log, as many as are asked for. */
type Stores = () => LogStore

const KINDS: readonly (readonly [name: string, create: () => Promise<Stores>])[] = [
  [
    'in memory',
    async () => {
      const first = memoryStore()
      return () => first.connect()
    },
  ],
  [
    'in a file',
    async () => {
      const file = join(await folderOf({}), 'log.db')
      return () => sqliteStore(file)
    },
  ],
]

function exchange(own: Authority, ticket: string): Promise<Response> {
  const headers = { authorization: `Bearer ${ticket}` }
  return own.exchange(new Request('http://localhost/live/session', { method: 'POST', headers }))
}

/** A request for events with the cookie of a response. */
function withCookie(response: Response, method = 'GET'): Request {
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  return new Request('http://localhost/live/stream', { method, headers: { cookie } })
}

function endOf(access: Access): Promise<string> {
  return new Promise((resolve) => void access.onEnd(resolve))
}

describe.each(KINDS)('gateways over one log %s', (_, create) => {
  it('exchange a ticket once, whichever of them gets it', async () => {
    const stores = await create()
    const [first, second] = [
      await authority({ log: await logOf(stores()) }),
      await authority({ log: await logOf(stores()) }),
    ]
    const ticket = await first.ticket(GRANT)

    const answers = await Promise.all([first, second, first, second].map((own) => exchange(own, ticket)))
    const won = answers.filter(({ status }) => status === 204)
    expect(won).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(3)
    const third = await authority({ log: await logOf(stores()) })
    expect(await codeOf(await exchange(third, ticket))).toEqual([401, 'unauthenticated'])
    const [accepted = Response.error()] = won
    expect(await codeOf(await second.authenticate(withCookie(accepted)))).toBe('admitted')
  })

  it('end connections, and refuse tokens, that another one has revoked, also after a restart', async () => {
    const stores = await create()
    const [first, second] = [
      await authority({ log: await logOf(stores()) }),
      await authority({ log: await logOf(stores()) }),
    ]
    const token = await first.sign(GRANT)
    const ended = endOf(await accessOf(second, GRANT))
    const other = await second.sign({ ...GRANT, sub: 'bob' })

    await first.revoke({ sub: 'ada' })
    expect(await ended).toBe('revoked')

    const third = await authority({ log: await logOf(stores()) })
    for (const own of [first, second, third]) {
      expect(await codeOf(await own.authenticate(bearing(token)))).toEqual([401, 'revoked'])
      expect(await codeOf(await own.authenticate(bearing(other)))).toBe('admitted')
      expect(await codeOf(await own.authenticate(bearing(await own.sign(GRANT))))).toBe('admitted')
    }
  })

  it('keep a revocation that one of a later clock has made already', async () => {
    const stores = await create()
    const scheduler = new VirtualTimeScheduler()
    const ahead = await authority({ log: await logOf(stores()) })
    const behind = await authority({ log: await logOf(stores()), scheduler })
    const token = await ahead.sign(GRANT)
    await ahead.revoke({ sub: 'ada' })

    await behind.revoke({ sub: 'ada' })
    await Promise.all([behind.revoke({ sub: 'bob' }), behind.revoke({ sub: 'bob' })])
    await behind.revoke({ sub: 'bob' })

    expect(await codeOf(await ahead.authenticate(bearing(token)))).toEqual([401, 'revoked'])
  })

  it('know a revocation that the log itself has deleted', async () => {
    const stores = await create()
    const log = await logOf(stores())
    const first = await authority({ log })
    const token = await first.sign(GRANT)
    await first.revoke({ sub: 'ada' })
    await log.forget({ source: '/gateway' })
    await first.close()

    const next = await authority({ log: await logOf(stores()) })
    expect(await codeOf(await next.authenticate(bearing(token)))).toEqual([401, 'revoked'])
  })
})

describe.each(KINDS)('retention of a log %s', (_, create) => {
  /** The ids of what a store has, from its first entry. */
  const idsIn = async (store: LogStore) =>
    (await store.read(await store.positionAt('start'), { limit: 100 })).entries.map(({ id }) => id)

  /** Deletes the entries of the next appends as soon as they are there, so many times. */
  function deleting(store: LogStore, times: number): LogStore {
    const append = store.append.bind(store)
    let left = times
    store.append = async (...of) => {
      const appended = await append(...of)
      const { deleted } = left > 0 ? await store.retention.trim({ limit: 9 }) : { deleted: 1 }
      if (deleted !== 1) throw new RangeError(`${deleted} entries were deleted`)
      left -= 1
      return appended
    }
    return store
  }

  it('waits for no gateway, and there is no process where nothing was ever revoked', async () => {
    const stores = await create()
    const store = stores()
    const own = await authority({ log: await logOf(store) })
    expect(await codeOf(await own.authenticate(bearing(await own.sign(GRANT))))).toBe('admitted')
    expect((await store.retention.stats()).readers).toEqual([])

    await own.revoke({ sub: 'ada' })
    const kept = { name: 'process:gateway:revocations', holdsRetention: false }
    expect((await store.retention.stats()).readers).toMatchObject([kept])
    await own.revoke({ sub: 'bob' })
    expect((await store.retention.trim({ limit: 9 })).blockedBy).toBeNull()
  })

  it('takes no revocation away, also one that is deleted as soon as it is there', async () => {
    const stores = await create()
    const store = deleting(stores(), 3)
    const first = await authority({ log: await logOf(store) })
    const other = await authority({ log: await logOf(stores()) })
    const token = await first.sign(GRANT)
    expect(await codeOf(await other.authenticate(bearing(token)))).toBe('admitted')
    const ended = endOf(await accessOf(other, GRANT))
    await first.revoke({ sub: 'ada' })
    expect(await ended).toBe('revoked')
    await store.retention.trim({ limit: 9 })
    expect(await idsIn(store)).toEqual([])

    const next = await authority({ log: await logOf(stores()) })
    for (const own of [first, other, next]) {
      expect(await codeOf(await own.authenticate(bearing(token)))).toEqual([401, 'revoked'])
    }
  })

  it('takes no later revocation away from a gateway that was started again', async () => {
    const stores = await create()
    const first = await authority({ log: await logOf(stores()) })
    await first.revoke({ sub: 'ada' })
    await first.close()
    const store = deleting(stores(), 1)
    await store.retention.trim({ limit: 9 })
    const second = await authority({ log: await logOf(store) })
    const token = await second.sign(GRANT)
    await second.revoke({ sub: 'ada' })
    await store.retention.trim({ limit: 9 })
    await second.close()

    const third = await authority({ log: await logOf(stores()) })
    expect(await codeOf(await third.authenticate(bearing(token)))).toEqual([401, 'revoked'])
  })

  it('waits no longer for the process of an earlier version, once a gateway runs', async () => {
    const stores = await create()
    const store = stores()
    const log = await logOf(store)
    const earlier = log.process('gateway:revocations', {
      version: 1,
      types: ['gateway.revoked'],
      key: () => undefined,
      init: () => null,
      event: () => {},
    })
    while ((await store.retention.stats()).readers.length === 0) await Promise.race([turn(), earlier.done])
    await earlier.stop()
    expect((await store.retention.stats()).readers).toMatchObject([{ holdsRetention: true }])

    await authority({ log })
    await expect
      .poll(async () => (await store.retention.stats()).readers)
      .toMatchObject([{ holdsRetention: false }])
  })
})

describe('a gateway whose log is closed', () => {
  it('accepts no token, since it does not know what is revoked, and leaves no timer', async () => {
    const scheduler = new VirtualTimeScheduler()
    scheduler.frame = Date.now()
    const log = await logOf()
    const own = await authority({ log, scheduler })
    const token = await own.sign(GRANT)
    expect(await codeOf(await own.authenticate(bearing(token)))).toBe('admitted')
    await log.close()

    await expect
      .poll(async () => codeOf(await own.authenticate(bearing(token))))
      .toEqual([503, 'unavailable'])
    await expect(own.revoke({ sub: 'ada' })).rejects.toThrow(/closed/)
    expect(scheduler.actions).toEqual([])
  })

  it('accepts tokens again once its log can be read again', async () => {
    const scheduler = new VirtualTimeScheduler()
    scheduler.frame = Date.now()
    const log = await logOf()
    let isBroken = true
    const positionAt: EventLog['positionAt'] = (start) =>
      isBroken ? Promise.reject(new RangeError('the disk is gone')) : log.positionAt(start)
    const broken = new Proxy(log, {
      get(target, name) {
        if (name === 'positionAt') return positionAt
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const own = await authority({ log: broken, scheduler })
    const token = await own.sign({ ...GRANT, timeToLive: 60_000 })
    expect(await codeOf(await own.authenticate(bearing(token)))).toEqual([503, 'unavailable'])
    isBroken = false

    await expect
      .poll(async () => {
        scheduler.flush()
        return codeOf(await own.authenticate(bearing(token)))
      })
      .toBe('admitted')
  })
})

describe('a ticket', () => {
  it('becomes a cookie of the gateway, for reading alone', async () => {
    const own = await authority()
    const response = await exchange(own, await own.ticket({ ...GRANT, timeToLive: 600_000 }))

    expect(response.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^rivulet=[\w.-]+; Path=\/live; Max-Age=(599|600); HttpOnly; SameSite=Strict$/),
    ])
    expect(await codeOf(await own.authenticate(withCookie(response)))).toBe('admitted')
    expect(await codeOf(await own.authenticate(withCookie(response, 'POST')))).toEqual([
      401,
      'unauthenticated',
    ])
  })

  it('is no token, and neither is the text of its cookie', async () => {
    const own = await authority()
    const ticket = await own.ticket(GRANT)
    const cookie = (await exchange(own, ticket)).headers.getSetCookie()[0] ?? ''
    const session = /=([^;]+)/.exec(cookie)?.[1] ?? ''

    for (const text of [ticket, session]) {
      expect(await codeOf(await own.authenticate(bearing(text)))).toEqual([401, 'unauthenticated'])
    }
    for (const text of [await own.sign(GRANT), session, 'a.b.c', '']) {
      expect(await codeOf(await exchange(own, text))).toEqual([401, 'unauthenticated'])
    }
    const asCookie = new Request('http://localhost/live/stream', {
      headers: { cookie: `rivulet=${await own.sign(GRANT)}` },
    })
    expect(await codeOf(await own.authenticate(asCookie))).toEqual([401, 'unauthenticated'])
  })

  it('whose grant is revoked gives no cookie, and ends the one that it gave', async () => {
    const own = await authority()
    const [ticket, later] = [await own.ticket(GRANT), await own.ticket(GRANT)]
    const response = await exchange(own, ticket)
    await own.revoke({ grant: ticket })
    await own.revoke({ grant: later })

    expect(await codeOf(await exchange(own, later))).toEqual([401, 'revoked'])
    expect(await codeOf(await own.authenticate(withCookie(response)))).toEqual([401, 'revoked'])
  })

  it('has a cookie that is good beside others of its name, in any order', async () => {
    const own = await authority()
    const sessionOf = async (ticket: string) => {
      const cookie = (await exchange(own, ticket)).headers.getSetCookie()[0] ?? ''
      return /=([^;]+)/.exec(cookie)?.[1] ?? ''
    }
    const good = await sessionOf(await own.ticket(GRANT))
    const revokedTicket = await own.ticket(GRANT)
    const revoked = await sessionOf(revokedTicket)
    await own.revoke({ grant: revokedTicket })
    const other = await sessionOf(
      await (await authority({ tokens: { secret: 'x'.repeat(32) } })).ticket(GRANT),
    )
    const request = (...sessions: readonly string[]) =>
      new Request('http://localhost/live/stream', {
        headers: { cookie: sessions.map((session) => `rivulet=${session}`).join('; ') },
      })

    for (const bad of [
      '',
      'a.b.c',
      'x=y',
      `"${good}"`,
      good.slice(1),
      await own.sign(GRANT),
      revoked,
      other,
    ]) {
      expect(await codeOf(await own.authenticate(request(bad, good)))).toBe('admitted')
      expect(await codeOf(await own.authenticate(request(good, bad)))).toBe('admitted')
      expect(await codeOf(await own.authenticate(request(bad, bad)))).not.toBe('admitted')
    }
  })

  it('whose grant does not fit into a cookie is refused when it is made', async () => {
    const sources = Array.from({ length: 100 }, (_, n) => `/v1/monitors/monitor_of_a_tenant_${n}`)
    const own = await authority()

    await expect(own.ticket({ ...GRANT, sources })).rejects.toThrow(/fit into a cookie/)
    await expect(own.sign({ ...GRANT, sources })).resolves.toBeTypeOf('string')
  })
})
