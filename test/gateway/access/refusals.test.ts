import { createHmac } from 'node:crypto'
import { SignJWT } from 'jose'
import type { GatewayClient, Grant } from 'rivulet/gateway'
import { describe, expect, it } from 'vitest'
import { ClientModel, openStream, Stream } from '../client.ts'
import { SECRET, served, setItem } from '../fixture.ts'
import { sendRaw } from './raw-request.ts'
import type { RawRequest } from './raw-request.ts'

/** What an attacker has, besides the network. */
interface Attack {
  /** A good token of `ada`. */
  readonly token: string
  /** A ticket that was exchanged already. */
  readonly ticket: string
  /** The cookie for it, as `name=value`. */
  readonly cookie: string
}

const GRANT: Grant = {
  sub: 'ada',
  views: ['items'],
  sources: ['/v1/monitors/a'],
  requests: { search: { perMinute: 2 } },
}

const STREAM = '/live/stream'
const VIEWS = JSON.stringify({ views: [{ view: 'items', params: { list: 'a' } }] })
const JSON_TYPE = { 'content-type': 'application/json' }
const FOLLOW = '/live/stream?view=items%3Flist%3Da'

function bearer(token: string, headers: Readonly<Record<string, string>> = {}): RawRequest {
  return {
    method: 'POST',
    target: STREAM,
    headers: { ...JSON_TYPE, authorization: `Bearer ${token}`, ...headers },
    body: VIEWS,
  }
}

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The claims of a token, and others. */
function claimsWith(token: string, others: object): object {
  return { ...JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()), ...others }
}

async function signed(
  token: string,
  others: object,
  {
    secret = SECRET,
    alg = 'HS256',
    ...header
  }: { secret?: string; alg?: string; [name: string]: unknown } = {},
): Promise<string> {
  return new SignJWT({ ...claimsWith(token, others) })
    .setProtectedHeader({ alg, typ: 'rivulet-grant+jwt', ...header })
    .sign(new TextEncoder().encode(secret), { crit: {} })
}

const now = () => Math.floor(Date.now() / 1000)

const REFUSED: Readonly<
  Record<
    string,
    readonly [
      request: (attack: Attack) => RawRequest | Promise<RawRequest>,
      status: number,
      code: string | null,
    ]
  >
> = {
  'no token': [
    () => ({ method: 'POST', target: STREAM, headers: JSON_TYPE, body: VIEWS }),
    401,
    'unauthenticated',
  ],
  'an expired token': [
    async ({ token }) => bearer(await signed(token, { iat: now() - 700, exp: now() - 100 })),
    401,
    'expired',
  ],
  'a token that is altered': [
    ({ token }) => {
      const [header, , signature] = token.split('.')
      return bearer(`${header}.${encoded(claimsWith(token, { sources: ['*'] }))}.${signature}`)
    },
    401,
    'unauthenticated',
  ],
  'a token whose signature is altered': [
    ({ token }) => {
      const at = token.lastIndexOf('.') + 5
      return bearer(`${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`)
    },
    401,
    'unauthenticated',
  ],
  'a token without a signature': [
    ({ token }) => bearer(token.slice(0, token.lastIndexOf('.') + 1)),
    401,
    'unauthenticated',
  ],
  'a token of the algorithm none': [
    ({ token }) => bearer(`${encoded({ alg: 'none', typ: 'rivulet-grant+jwt' })}.${token.split('.')[1]}.`),
    401,
    'unauthenticated',
  ],
  'a token of the algorithm none with a signature': [
    ({ token }) => {
      const [, claims, signature] = token.split('.')
      return bearer(`${encoded({ alg: 'none', typ: 'rivulet-grant+jwt' })}.${claims}.${signature}`)
    },
    401,
    'unauthenticated',
  ],
  'a token of a longer hash': [
    async ({ token }) => bearer(await signed(token, {}, { alg: 'HS512', secret: SECRET.repeat(2) })),
    401,
    'unauthenticated',
  ],
  'a token of another key': [
    async ({ token }) => bearer(await signed(token, {}, { secret: 'x'.repeat(32) })),
    401,
    'unauthenticated',
  ],
  'a token of a key that is empty': [
    ({ token }) => {
      const [header, claims] = token.split('.')
      return bearer(
        `${header}.${claims}.${createHmac('sha256', '').update(`${header}.${claims}`).digest('base64url')}`,
      )
    },
    401,
    'unauthenticated',
  ],
  'a token of another audience': [
    async ({ token }) => bearer(await signed(token, { aud: 'another gateway' })),
    401,
    'unauthenticated',
  ],
  'a token without an audience': [
    async ({ token }) => bearer(await signed(token, { aud: undefined })),
    401,
    'unauthenticated',
  ],
  'a token of another issuer': [
    async ({ token }) => bearer(await signed(token, { iss: 'https://login.example' })),
    401,
    'unauthenticated',
  ],
  'a token that never expires': [
    async ({ token }) => bearer(await signed(token, { exp: undefined })),
    401,
    'unauthenticated',
  ],
  'a token that an application has signed with the same key': [
    async ({ token }) => bearer(await signed(token, {}, { typ: 'JWT' })),
    401,
    'unauthenticated',
  ],
  'a token with a key in its header': [
    async ({ token }) =>
      bearer(
        await signed(
          token,
          { sub: 'eve' },
          { secret: 'e'.repeat(32), jwk: { kty: 'oct', k: 'ZQ' }, kid: '../../dev/null' },
        ),
      ),
    401,
    'unauthenticated',
  ],
  'an oversize token': [
    async ({ token }) => bearer(await signed(token, { sources: Array(300).fill('/v1/monitors/monitor_1') })),
    401,
    'unauthenticated',
  ],
  'two tokens': [({ token }) => bearer(`${token}, Bearer ${token}`), 401, 'unauthenticated'],
  'a good token in the query': [
    ({ token }) => ({
      target: `${FOLLOW}&token=${token}&access_token=${token}&authorization=Bearer+${token}`,
    }),
    401,
    'unauthenticated',
  ],
  'a good token in a body': [
    ({ token }) => ({
      method: 'POST',
      target: STREAM,
      headers: JSON_TYPE,
      body: JSON.stringify({ token, access_token: token, views: [{ view: 'items', params: { list: 'a' } }] }),
    }),
    401,
    'unauthenticated',
  ],
  'a good token with another scheme': [
    ({ token }) => ({ target: FOLLOW, headers: { authorization: `Basic ${token}` } }),
    401,
    'unauthenticated',
  ],
  'a good token as a cookie': [
    ({ token }) => ({ target: FOLLOW, headers: { cookie: `rivulet=${token}` } }),
    401,
    'unauthenticated',
  ],
  'a ticket as a token': [({ ticket }) => bearer(ticket), 401, 'unauthenticated'],
  'a ticket that was used': [
    ({ ticket }) => ({
      method: 'POST',
      target: '/live/session',
      headers: { authorization: `Bearer ${ticket}` },
    }),
    401,
    'unauthenticated',
  ],
  'a ticket that is altered': [
    ({ ticket }) => {
      const [header, , signature] = ticket.split('.')
      const altered = `${header}.${encoded(claimsWith(ticket, { jti: 'another' }))}.${signature}`
      return { method: 'POST', target: '/live/session', headers: { authorization: `Bearer ${altered}` } }
    },
    401,
    'unauthenticated',
  ],
  'a ticket that has expired': [
    async ({ ticket }) => {
      const expired = await signed(ticket, { exp: now() - 1 }, { typ: 'rivulet-ticket+jwt' })
      return { method: 'POST', target: '/live/session', headers: { authorization: `Bearer ${expired}` } }
    },
    401,
    'expired',
  ],
  'a ticket in the query': [
    ({ ticket }) => ({ method: 'POST', target: `/live/session?ticket=${ticket}` }),
    401,
    'unauthenticated',
  ],
  'a POST with the cookie, as a page of another site may send it': [
    ({ cookie }) => ({ method: 'POST', target: STREAM, headers: { ...JSON_TYPE, cookie }, body: VIEWS }),
    401,
    'unauthenticated',
  ],
  'a search with the cookie': [
    ({ cookie }) => ({
      method: 'POST',
      target: '/live/search',
      headers: { ...JSON_TYPE, cookie },
      body: '{"search_queries":["q"]}',
    }),
    401,
    'unauthenticated',
  ],
  'the cookie with the origin of another site': [
    ({ cookie }) => ({ target: FOLLOW, headers: { cookie, origin: 'https://evil.example' } }),
    403,
    'forbidden',
  ],
  'the cookie from another site, without an origin, as an image has it': [
    ({ cookie }) => ({ target: FOLLOW, headers: { cookie, 'sec-fetch-site': 'cross-site' } }),
    403,
    'forbidden',
  ],
  'the cookie from another host of the site': [
    ({ cookie }) => ({ target: FOLLOW, headers: { cookie, 'sec-fetch-site': 'same-site' } }),
    403,
    'forbidden',
  ],
  'a good token with the origin of another site': [
    ({ token }) => bearer(token, { origin: 'https://evil.example' }),
    403,
    'forbidden',
  ],
  'the origin null, as of a file or a frame in a sandbox': [
    ({ token }) => bearer(token, { origin: 'null' }),
    403,
    'forbidden',
  ],
  'an origin that begins like this machine': [
    ({ token }) => bearer(token, { origin: 'http://localhost.evil.example' }),
    403,
    'forbidden',
  ],
  'an origin that has this machine as its user': [
    ({ token }) => bearer(token, { origin: 'http://localhost:80@evil.example' }),
    403,
    'forbidden',
  ],
  'an origin of another scheme': [
    ({ token }) => bearer(token, { origin: 'file://localhost' }),
    403,
    'forbidden',
  ],
  'a preflight of another site': [
    () => ({
      method: 'OPTIONS',
      target: STREAM,
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
    }),
    403,
    'forbidden',
  ],
  'a name of the attacker that resolves to this machine': [
    ({ token }) => bearer(token, { host: 'evil.example' }),
    421,
    'forbidden',
  ],
  'such a name with the port of this machine': [
    ({ token }) => bearer(token, { host: 'evil.example:3000', origin: 'http://evil.example:3000' }),
    421,
    'forbidden',
  ],
  'a host with this machine as its user': [
    ({ token }) => bearer(token, { host: 'evil.example@localhost' }),
    // As no server that takes a `Request` can represent it.
    400,
    null,
  ],
  'another host in the target': [
    ({ token }) => ({ ...bearer(token), target: `http://evil.example${STREAM}` }),
    421,
    'forbidden',
  ],
  'another host in a target of two slashes': [
    ({ token }) => ({ ...bearer(token), target: `//evil.example${STREAM}` }),
    421,
    'forbidden',
  ],
  'a search as a form of another site sends it': [
    ({ token }) => ({
      method: 'POST',
      target: '/live/search',
      headers: { 'content-type': 'text/plain', authorization: `Bearer ${token}` },
      body: '{"search_queries":["q"]}',
    }),
    415,
    'invalid',
  ],
  'runs that are not granted': [
    ({ token }) => ({
      method: 'POST',
      target: '/live/runs',
      headers: { ...JSON_TYPE, authorization: `Bearer ${token}` },
      body: '{"group":"tgrp_1","inputs":[{"input":"x"}]}',
    }),
    403,
    'forbidden',
  ],
  'a path outside': [({ token }) => ({ ...bearer(token), target: '/live/../admin' }), 404, 'invalid'],
  'another method': [({ token }) => ({ ...bearer(token), method: 'PUT' }), 405, 'invalid'],
}

const client: GatewayClient = {
  search: () => Promise.resolve({ results: [] }),
  taskGroups: { addRuns: () => Promise.reject(new Error('not this')) },
}

/** A gateway, and what an attacker has of it. */
async function attacked() {
  const scene = await served({ client })
  const { gateway, url } = scene
  const token = await gateway.grant(GRANT)
  const ticket = await gateway.ticket(GRANT)
  const exchanged = await fetch(`${url}/session`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ticket}` },
  })
  const cookie = exchanged.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  return { ...scene, attack: { token, ticket, cookie } satisfies Attack }
}

describe('a gateway refuses', () => {
  it.each(Object.entries(REFUSED))('%s', async (_, [request, status, code]) => {
    const { url, attack } = await attacked()
    const response = await sendRaw(url, await request(attack))
    const error = response.text === '' ? null : JSON.parse(response.text).error.code

    expect([response.status, error]).toEqual([status, code])
    const shown = `${response.text} ${JSON.stringify(response.headers)}`
    for (const secret of [SECRET, attack.token, attack.ticket, attack.cookie.slice('rivulet='.length)]) {
      expect(shown).not.toContain(secret)
    }
    expect(shown).not.toMatch(/\/src\/|node_modules|at \w+ \(/)
    expect(response.headers['access-control-allow-origin']).toBeUndefined()
    expect(response.headers['set-cookie']).toBeUndefined()
    // A token that expired while it was in use is renewed; the others are not the client's to mend.
    expect(response.headers['www-authenticate']).toBe(status === 401 ? 'Bearer' : undefined)
  })

  it('none of these where nothing is wrong with them', async () => {
    const { url, attack } = await attacked()
    const { token, cookie } = attack
    const good: readonly RawRequest[] = [
      bearer(token),
      bearer(token, { origin: 'http://localhost:5173' }),
      bearer(token, { origin: 'http://[::1]:5173' }),
      { target: FOLLOW, headers: { authorization: `bearer ${token}` } },
      { target: FOLLOW, headers: { cookie } },
      { target: FOLLOW, headers: { cookie: `a=b; ${cookie}; c=d`, 'sec-fetch-site': 'same-origin' } },
      { target: FOLLOW, headers: { cookie, 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:5173' } },
    ]

    const answers = await Promise.all(good.map((request) => sendRaw(url, request)))
    expect(answers.map(({ status }) => status)).toEqual(good.map(() => 200))
  })

  it('more connections of a subject than its limit, and takes the next one when one has ended', async () => {
    const { url, gateway } = await served({ maxConnections: 2 })
    const token = await gateway.grant(GRANT)
    const open = () => openStream(url, token, [{ view: 'items', params: { list: 'a' } }])
    const [first] = [await open(), await open()]

    const refused = await sendRaw(url, bearer(token))
    expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([429, 'too_many'])
    expect(refused.headers['retry-after']).toBe('5')
    const other = await sendRaw(url, bearer(await gateway.grant({ ...GRANT, sub: 'bob' })))
    expect(other.status).toBe(200)

    await first.close()
    await expect.poll(async () => (await sendRaw(url, bearer(token))).status).toBe(200)
  })

  it('more searches of a subject than its limit', async () => {
    const { url, attack } = await attacked()
    const search = () =>
      sendRaw(url, {
        method: 'POST',
        target: '/live/search',
        headers: { ...JSON_TYPE, authorization: `Bearer ${attack.token}` },
        body: '{"search_queries":["q"]}',
      })
    const answers = [await search(), await search(), await search()]

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(Number(answers[2]?.headers['retry-after'])).toBeGreaterThan(0)
  })

  it('views and sources that a grant does not name, and only them', async () => {
    const { url, gateway, append } = await served()
    await append(setItem('a', 'x', '1'), setItem('b', 'x', '2'))
    const token = await gateway.grant({
      sub: 'ada',
      views: ['items', 'everything'],
      sources: ['/v1/monitors/a'],
    })
    const onlyItems = await gateway.grant({ sub: 'ada', views: ['items'], sources: ['*'] })
    const stream = await openStream(url, token, [
      { view: 'items', params: { list: 'a' } },
      { view: 'items', params: { list: 'b' } },
      { view: 'everything' },
    ])
    await stream.untilRows((model) => model.views.size === 2)

    expect(stream.frames.filter(({ name }) => name === 'denied')).toMatchObject([
      { data: { view: 'items?list=b', problem: { code: 'forbidden' } } },
    ])
    expect(Object.keys(stream.model.rows('everything'))).toEqual(['a/x'])
    const foreign = await openStream(url, onlyItems, [{ view: 'everything' }, { view: 'constructor' }])
    await foreign.until('denied', ({ data }) => data.view === 'constructor')
    expect(foreign.frames.slice(1, 3)).toMatchObject([
      { name: 'denied', data: { view: 'everything', problem: { code: 'forbidden' } } },
      { name: 'denied', data: { view: 'constructor', problem: { code: 'unknown_view' } } },
    ])
  })
})

describe('a connection ends', () => {
  it('with a sign when its grant expires', async () => {
    const { url, gateway } = await served()
    const token = await gateway.grant({ ...GRANT, timeToLive: 1000 })
    const stream = await openStream(url, token, [{ view: 'items', params: { list: 'a' } }])

    expect((await stream.until('close')).data).toEqual({ reason: 'expired' })
    expect(await stream.next()).toBeUndefined()
    expect((await sendRaw(url, bearer(token))).status).toBe(401)
  })

  it('with a sign when its grant is revoked, whether it has a token or a cookie', async () => {
    const { url, gateway, attack } = await attacked()
    const byToken = await openStream(url, attack.token, [{ view: 'items', params: { list: 'a' } }])
    const response = await fetch(new URL(FOLLOW, url), { headers: { cookie: attack.cookie } })
    const byCookie = new Stream(response, new ClientModel())
    await gateway.revoke({ sub: 'ada' })

    expect((await byToken.until('close')).data).toEqual({ reason: 'revoked' })
    expect((await byCookie.until('close')).data).toEqual({ reason: 'revoked' })
    const again = [bearer(attack.token), { target: FOLLOW, headers: { cookie: attack.cookie } }]
    const answers = await Promise.all(again.map((request) => sendRaw(url, request)))
    expect(answers.map(({ status, text }) => [status, JSON.parse(text).error.code])).toEqual([
      [401, 'revoked'],
      [401, 'revoked'],
    ])
  })
})

describe('omitted fields', () => {
  const grant: Grant = { ...GRANT, sources: ['*'], views: ['items'], omit: ['value'] }
  const request = { view: 'items', params: { list: 'a' } } as const

  it('are in no frame: not in a snapshot, a change, nor after a gap', async () => {
    const { url, gateway, append } = await served()
    await append(setItem('a', 'x', 'HIDDEN-1'))
    const token = await gateway.grant(grant)
    const stream = await openStream(url, token, [request])
    await stream.until('current')
    await append(setItem('a', 'y', 'HIDDEN-2'), setItem('a', 'x', 'HIDDEN-3'))
    await stream.until('changes', ({ data }) => data.rows.some(([, row]) => Object(row).times === 2))
    const resumed = await openStream(url, token, [{ ...request, after: 'a position of another log' }])
    await resumed.until('current')

    expect(stream.frames.map(({ name }) => name)).toEqual(expect.arrayContaining(['snapshot', 'changes']))
    expect(resumed.frames.map(({ name }) => name)).toEqual(expect.arrayContaining(['gap', 'snapshot']))
    expect(JSON.stringify([stream.frames, resumed.frames])).not.toMatch(/HIDDEN|value/)
    expect(resumed.model.rows('items?list=a')).toEqual({ 'a/x': { times: 2 }, 'a/y': { times: 1 } })
  })

  it('are in no frame of a page with a cookie, and in no snapshot for the server', async () => {
    const { url, gateway, append } = await served()
    await append(setItem('a', 'x', 'HIDDEN-1'))
    const headers = { authorization: `Bearer ${await gateway.ticket(grant)}` }
    const session = await fetch(`${url}/session`, { method: 'POST', headers })
    const cookie = session.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const stream = new Stream(await fetch(new URL(FOLLOW, url), { headers: { cookie } }), new ClientModel())
    await stream.until('current')
    const rendered = await gateway.snapshot(grant, [request])

    expect(stream.model.rows('items?list=a')).toEqual({ 'a/x': { times: 1 } })
    expect(JSON.stringify([stream.frames, rendered])).not.toMatch(/HIDDEN|value/)
  })

  it('are in no entry of the log itself, in any mode of reading it', async () => {
    const { url, gateway, append } = await served()
    await append(setItem('a', 'x', 'HIDDEN-1'), setItem('b', 'x', 'FOREIGN'))
    const types = ['monitor.event_stream'] as const
    const token = await gateway.grant({
      sub: 'ada',
      sources: ['/v1/monitors/a'],
      types,
      omit: ['event_id', 'id', 'cursor', 'output.content'],
    })
    const headers = { authorization: `Bearer ${token}` }
    const caughtUp = await (await fetch(`${url}/log?offset=-1`, { headers })).text()
    const polled = await (await fetch(`${url}/log?offset=-1&live=long-poll`, { headers })).text()
    const sse = await fetch(`${url}/log?offset=-1&live=sse`, { headers })
    const reader = sse.body?.pipeThrough(new TextDecoderStream()).getReader()
    const streamed = String((await reader?.read())?.value)
    await reader?.cancel()

    for (const text of [caughtUp, polled, streamed]) {
      expect(text).toContain('monitor.event_stream')
      expect(text).not.toMatch(/HIDDEN|FOREIGN|event_id|"cursor"/)
    }
    expect((await fetch(`${url}/log?offset=-1`)).status).toBe(401)
    const typeless = { authorization: `Bearer ${await gateway.grant({ sub: 'ada', sources: ['*'] })}` }
    expect((await fetch(`${url}/log?offset=-1`, { headers: typeless })).status).toBe(403)
  })

  it('of one client are there for another one of the same frames', async () => {
    const { url, gateway, append } = await served()
    const hiding = await openStream(url, await gateway.grant(grant), [request])
    const whole = await openStream(url, await gateway.grant({ ...grant, omit: [] }), [request])
    await Promise.all([hiding.until('current'), whole.until('current')])
    await append(setItem('a', 'x', 'HIDDEN-1'))
    await Promise.all([hiding.until('changes'), whole.until('changes')])

    expect(hiding.model.rows('items?list=a')).toEqual({ 'a/x': { times: 1 } })
    expect(whole.model.rows('items?list=a')).toEqual({ 'a/x': { value: 'HIDDEN-1', times: 1 } })
  })
})

describe('a gateway with origins', () => {
  it('answers pages of them alone, and their preflights', async () => {
    const { url, gateway } = await served({ origins: ['https://app.example', 'https://live.example'] })
    const token = await gateway.grant(GRANT)
    const from = (origin: string, host = 'live.example') => sendRaw(url, bearer(token, { origin, host }))

    const good = await from('https://app.example')
    expect([good.status, good.headers['access-control-allow-origin'], good.headers['vary']]).toEqual([
      200,
      'https://app.example',
      'Origin',
    ])
    const bad = [
      'http://app.example',
      'https://app.example:8443',
      'https://app.example.evil.example',
      'https://xapp.example',
      'http://localhost:3000',
    ]
    const answers = await Promise.all(bad.map((origin) => from(origin)))
    expect(answers.map(({ status }) => status)).toEqual(bad.map(() => 403))
    expect((await from('https://app.example', 'other.example')).status).toBe(421)
    expect((await from('https://app.example', 'app.example:443')).status).toBe(200)

    const preflight = await sendRaw(url, {
      method: 'OPTIONS',
      target: STREAM,
      headers: {
        host: 'live.example',
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type',
      },
    })
    expect(preflight).toMatchObject({
      status: 204,
      headers: {
        'access-control-allow-origin': 'https://app.example',
        'access-control-allow-headers': expect.stringContaining('authorization'),
        vary: 'Origin',
      },
    })
  })

  it('lets pages read why they are refused', async () => {
    const { url } = await served({ origins: ['https://app.example'] })
    const { status, headers } = await sendRaw(
      url,
      bearer('a.b.c', { origin: 'https://app.example', host: 'app.example' }),
    )

    expect([status, headers['access-control-allow-origin']]).toEqual([401, 'https://app.example'])
  })

  it('sets a cookie that is sent over https alone', async () => {
    const { url, gateway } = await served({ origins: ['https://app.example'] })
    const headers = { host: 'app.example', authorization: `Bearer ${await gateway.ticket(GRANT)}` }
    const response = await sendRaw(url, { method: 'POST', target: '/live/session', headers })
    const [cookie = ''] = [response.headers['set-cookie']].flat() as string[]

    expect(cookie).toMatch(
      /^__Secure-rivulet=[\w.-]+; Path=\/live; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    )
    const follow = (name: string) =>
      sendRaw(url, {
        target: FOLLOW,
        headers: { host: 'app.example', cookie: cookie.replace(/^[^=]+/, name).split(';')[0] },
      })
    expect((await follow('__Secure-rivulet')).status).toBe(200)
    // Which a page over plain http may set.
    expect((await follow('rivulet')).status).toBe(401)
  })

  it.each([
    [[]],
    [['https://app.example/']],
    [['app.example']],
    [['*']],
    [['null']],
    [['https://*.example']],
  ])('refuses %o as origins', async (origins) => {
    await expect(served({ origins })).rejects.toThrow(/origins/)
  })
})
