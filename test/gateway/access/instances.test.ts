import { join } from 'node:path'
import { memoryLog } from 'rivulet'
import type { EventLog, LogStore } from 'rivulet'
import { sqliteLog } from 'rivulet/log/sqlite'
import { firstValueFrom, VirtualTimeScheduler } from 'rxjs'
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
      const first = memoryLog()
      return () => first.connect()
    },
  ],
  [
    'in a file',
    async () => {
      const file = join(await folderOf({}), 'log.db')
      return () => sqliteLog(file)
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

  it('know a revocation that the log itself has deleted', async () => {
    const stores = await create()
    const log = await logOf(stores())
    const first = await authority({ log })
    const token = await first.sign(GRANT)
    await first.revoke({ sub: 'ada' })
    // The process has it once its state does.
    await firstValueFrom(log.state('gateway:revocations').changes())
    await log.forget({ source: '/gateway' })
    await first.close()

    const next = await authority({ log: await logOf(stores()) })
    expect(await codeOf(await next.authenticate(bearing(token)))).toEqual([401, 'revoked'])
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

  it('whose grant does not fit into a cookie is refused when it is made', async () => {
    const sources = Array.from({ length: 100 }, (_, n) => `/v1/monitors/monitor_of_a_tenant_${n}`)
    const own = await authority()

    await expect(own.ticket({ ...GRANT, sources })).rejects.toThrow(/fit into a cookie/)
    await expect(own.sign({ ...GRANT, sources })).resolves.toBeTypeOf('string')
  })
})
