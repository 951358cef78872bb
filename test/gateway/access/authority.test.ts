import { SignJWT } from 'jose'
import type { Entry } from 'rivulet/log'
import type { Grant } from 'rivulet/gateway'
import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { accessOf, authority, bearing, codeOf, GRANT, SECRET } from './scene.ts'

describe('a token', () => {
  it('gives the access that was granted, and nothing else', async () => {
    const access = await accessOf(await authority(), { ...GRANT, types: ['task_run.state'] })

    expect(access.sub).toBe('ada')
    expect(['group', 'monitors', 'constructor'].map((view) => access.maySeeView(view))).toEqual([
      true,
      false,
      false,
    ])
    expect(access.types).toEqual(['task_run.state'])
    expect(access.requests).toEqual({})
  })

  it('is signed by the first secret and verified by each', async () => {
    const before = await (await authority()).sign(GRANT)
    const rotated = await authority({ tokens: { secret: ['another-secret-of-32-bytes-or-more', SECRET] } })

    expect(await codeOf(await rotated.authenticate(bearing(before)))).toBe('admitted')
    const after = await rotated.sign(GRANT)
    expect(await codeOf(await (await authority()).authenticate(bearing(after)))).toEqual([
      401,
      'unauthenticated',
    ])
  })

  it('expires to the millisecond, as does the access that it gave', async () => {
    const scheduler = new VirtualTimeScheduler()
    scheduler.frame = 1_700_000_000_500
    const own = await authority({ scheduler })
    const token = await own.sign({ ...GRANT, timeToLive: 1000 })
    const access = await own.authenticate(bearing(token))
    if (access instanceof Response) throw new Error('refused')
    const ends: string[] = []
    access.onEnd((reason) => ends.push(`${reason} ${scheduler.now() - 1_700_000_000_500}`))
    access.onEnd((reason) => ends.push(reason))()

    const before: Promise<unknown>[] = []
    scheduler.schedule(() => before.push(own.authenticate(bearing(token)).then(codeOf)), 999)
    scheduler.flush()

    expect(await Promise.all(before)).toEqual(['admitted'])
    expect(ends).toEqual(['expired 1000'])
    expect(await codeOf(await own.authenticate(bearing(token)))).toEqual([401, 'expired'])
  })

  it('is refused where its claims are not those that this gateway signs', async () => {
    const key = new TextEncoder().encode(SECRET)
    const now = Math.floor(Date.now() / 1000)
    const claims = { views: ['group'], iss: 'rivulet', aud: 'rivulet', sub: 'eve', jti: '1', iat: now }
    const sign = (payload: object, typ = 'rivulet-grant+jwt', alg = 'HS256') =>
      new SignJWT({ ...claims, exp: now + 60, ...payload }).setProtectedHeader({ alg, typ }).sign(key)
    const cases = {
      valid: await sign({}),
      'without an expiry': await sign({ exp: undefined }),
      'that lives for a year': await sign({ exp: now + 365 * 86_400 }),
      'whose expiry is text': await sign({ exp: `${now + 60}` }),
      'without an id': await sign({ jti: undefined }),
      'without a subject': await sign({ sub: undefined }),
      'of another issuer': await sign({ iss: 'other' }),
      'of another type': await sign({}, 'JWT'),
      'of another algorithm': await sign({}, 'rivulet-grant+jwt', 'HS512'),
      'with an unknown right': await sign({ requests: { deleteEverything: {} } }),
      'with views that are no list': await sign({ views: 'group' }),
    }

    const codes = await Promise.all(
      Object.values(cases).map(async (token) =>
        codeOf(await (await authority()).authenticate(bearing(token))),
      ),
    )
    const [valid, ...others] = codes
    expect(valid).toBe('admitted')
    expect(others).toEqual(others.map(() => [401, 'unauthenticated']))
  })
})

describe('sources', () => {
  it.each([
    ['/v1/tasks/groups/tgrp_1', ['/v1/tasks/groups/tgrp_1'], true],
    ['/v1/tasks/groups/tgrp_10', ['/v1/tasks/groups/tgrp_1'], false],
    ['/v1/monitors/monitor_1', ['/v1/monitors/*'], true],
    ['/v1/tasks/groups/tgrp_1', ['/v1/monitors/*'], false],
    [undefined, ['/v1/monitors/*'], false],
    [undefined, ['*'], true],
    ['/anything', ['*'], true],
    ['/subjects/ada', [], true],
    ['/subjects/adam', [], false],
  ])('%s, of a grant of %s: %s', async (source, sources, expected) => {
    const access = await accessOf(await authority(), { ...GRANT, sources })

    expect(access.maySeeSource(source)).toBe(expected)
  })

  it('a subject named * is no wildcard', async () => {
    const access = await accessOf(await authority(), { sub: '*' })

    expect(access.maySeeSource('/subjects/ada')).toBe(false)
  })
})

describe('the limits of a grant', () => {
  it.each([
    [{ sub: '' }, /grant\.sub/],
    [{ sub: 'a'.repeat(257) }, /grant\.sub/],
    [{ ...GRANT, views: ['grup'] }, /grant\.views\[0\].*did you mean group\?/],
    [{ ...GRANT, sources: ['/v1/*/events'] }, /grant\.sources\[0\]/],
    [{ ...GRANT, omit: ['output..basis'] }, /grant\.omit\[0\]/],
    [{ ...GRANT, timeToLive: 86_400_001 }, /grant\.timeToLive/],
    [{ ...GRANT, requests: { search: { perMinute: 0 } } }, /grant\.requests\.search\.perMinute/],
    [{ ...GRANT, requests: { addRuns: { groups: [''] } } }, /grant\.requests\.addRuns\.groups\[0\]/],
    [
      { ...GRANT, sources: Array.from({ length: 200 }, (_, n) => `/v1/monitors/monitor_of_a_tenant_${n}`) },
      /too large/,
    ],
  ])('%o is refused', async (grant, message) => {
    await expect((await authority()).sign(grant as Grant)).rejects.toThrow(message)
  })

  it('a short secret is refused, without it in the error', async () => {
    await expect(authority({ tokens: { secret: ['too-short-a-secret'] } })).rejects.toThrow(
      /^tokens\.secret must be at least 32 bytes of UTF-8, got a string \(not shown\)$/,
    )
  })
})

describe('revocation', () => {
  it('ends the connections of a subject, and refuses its tokens from then on', async () => {
    const own = await authority()
    const token = await own.sign(GRANT)
    const access = await accessOf(own, GRANT)
    const other = await accessOf(own, { ...GRANT, sub: 'bob' })
    const ends: string[] = []
    access.onEnd((reason) => ends.push(`ada ${reason}`))
    other.onEnd((reason) => ends.push(`bob ${reason}`))

    await own.revoke({ sub: 'ada' })

    expect(ends).toEqual(['ada revoked'])
    expect(await codeOf(await own.authenticate(bearing(token)))).toEqual([401, 'revoked'])
  })

  it('of one grant leaves the others of its subject', async () => {
    const own = await authority()
    const access = await accessOf(own, GRANT)
    await own.revoke({ grant: access.grant })

    expect(await new Promise((resolve) => void access.onEnd(resolve))).toBe('revoked')
    expect(await codeOf(await own.authenticate(bearing(await own.sign(GRANT))))).toBe('admitted')
  })
})

describe('connections of a subject', () => {
  it('are limited, and a released one makes room once', async () => {
    const own = await authority({ maxConnections: 2 })
    const access = await accessOf(own, GRANT)
    const other = await accessOf(own, { ...GRANT, sub: 'bob' })
    const first = own.admit(access)
    own.admit(access)
    const third = own.admit(access)

    expect(third).toMatchObject({ status: 429 })
    expect(third instanceof Response && third.headers.get('retry-after')).toBe('5')
    expect(own.admit(other)).toBeTypeOf('function')
    if (typeof first === 'function') {
      first()
      first()
    }
    expect(own.admit(access)).toBeTypeOf('function')
    expect(own.admit(access)).toMatchObject({ status: 429 })
  })
})

describe('entries of the log', () => {
  const run = (taskgroup_id: unknown) => ({
    type: 'task_run.state',
    source: '/v1/tasks/runs/trun_1',
    data: { run: { taskgroup_id } },
  })

  it.each([
    ['of a source that is granted', { type: 'error', source: '/v1/tasks/groups/tgrp_1', data: {} }, true],
    ['of another source', { type: 'error', source: '/v1/tasks/groups/tgrp_2', data: {} }, false],
    ['of another type', { type: 'stream.gap', source: '/v1/tasks/groups/tgrp_1', data: {} }, false],
    ['of a run of a group that is granted', run('tgrp_1'), true],
    ['of a run of another group', run('tgrp_2'), false],
    ['of a run without a group', run(null), false],
    ['of a run whose group is no id', run('../groups/tgrp_1'), false],
    ['of a run that is null', { ...run(null), data: { run: null } }, false],
    ['of a run without data', { ...run(null), data: null }, false],
    ['of another type with the run of a group', { ...run('tgrp_1'), type: 'error' }, false],
  ])('%s are visible or not', async (_, entry, expected) => {
    const access = await accessOf(await authority(), { ...GRANT, types: ['error', 'task_run.state'] })

    expect(access.maySeeEntry(entry as unknown as Entry)).toBe(expected)
  })

  it('of the types of an application are visible to grants that name them', async () => {
    const grant: Grant = JSON.parse('{ "sub": "ada", "types": ["tank.full"], "sources": ["/tanks/*"] }')
    const access = await accessOf(await authority(), grant)
    const entry = (type: string) => ({ type, source: '/tanks/1', data: {} }) as unknown as Entry

    expect([entry('tank.full'), entry('tank.empty')].map((each) => access.maySeeEntry(each))).toEqual([
      true,
      false,
    ])
  })
})
