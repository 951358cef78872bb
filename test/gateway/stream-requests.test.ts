import { describe, expect, it } from 'vitest'
import { openStream } from './client.ts'
import { served, setItem } from './fixture.ts'

/** Sends a body to a gateway, and resolves with the status and the refusal. */
async function post(body: BodyInit, headers: Readonly<Record<string, string>> = {}) {
  const { url, token } = await served()
  const response = await fetch(`${url}/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await token()}`, 'content-type': 'application/json', ...headers },
    body,
  })
  return { status: response.status, body: await response.json() }
}

const views = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ view: 'items', params: { list: String(at) } }))

describe('the body of a request for a stream', () => {
  it.each([
    ['is empty', ''],
    ['is no JSON', '{"views": ['],
    ['is a list', '[]'],
    ['is null', 'null'],
    ['has no views', '{}'],
    ['has views that are no list', '{"views":{"view":"items"}}'],
    ['has an empty list', '{"views":[]}'],
    ['has a view that is no object', '{"views":["items"]}'],
    ['has a view without a name', '{"views":[{}]}'],
    ['has a name that is a number', '{"views":[{"view":1}]}'],
    ['has params that are a list', '{"views":[{"view":"items","params":["a"]}]}'],
    ['has a param that is a number', '{"views":[{"view":"items","params":{"list":1}}]}'],
    ['has a param that is null', '{"views":[{"view":"items","params":{"list":null}}]}'],
    [
      'has a param with a lone surrogate',
      String.raw`{"views":[{"view":"items","params":{"list":"\ud800"}}]}`,
    ],
    ['has a position that is a number', '{"views":[{"view":"everything","after":5}]}'],
    [
      'has a very long param',
      JSON.stringify({ views: [{ view: 'items', params: { list: 'x'.repeat(1_025) } }] }),
    ],
    ['asks for the same twice', JSON.stringify({ views: [...views(1), ...views(1)] })],
    ['asks for 65 views', JSON.stringify({ views: views(65) })],
  ])('is refused where it %s', async (_, body) => {
    const { status, body: refusal } = await post(body)

    expect(status).toBe(400)
    expect(refusal).toEqual({ error: { code: 'invalid', message: expect.any(String) } })
  })

  it('is refused over 256 KB, whether its length is known or not', async () => {
    const large = JSON.stringify({ views: views(1), padding: 'x'.repeat(256 * 1024) })
    const unknown = new Blob([large]).stream()

    expect((await post(large)).status).toBe(413)
    const { url, token } = await served()
    const response = await fetch(`${url}/stream`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' },
      body: unknown,
      duplex: 'half',
    } as RequestInit)
    expect(response.status).toBe(413)
  })

  it('is refused with another type than JSON, which a form of any page can send', async () => {
    expect((await post('{}', { 'content-type': 'text/plain' })).status).toBe(415)
  })

  it('may ask for 64 views', async () => {
    const { url, token, append } = await served()
    const stream = await openStream(url, await token(), views(64))
    let current = 0
    while (current < 64) if ((await stream.next())?.name === 'current') current += 1

    await append(setItem('63', 'x', '1'))
    await stream.untilRows((model) => model.rows('items?list=63')['63/x'] !== undefined)

    expect(stream.model.views.size).toBe(64)
  })
})

describe('the query of a stream for EventSource', () => {
  it.each([
    '',
    '?view=',
    '?view=%25zz',
    `?${new URLSearchParams(views(17).map(({ params }) => ['view', `items?list=${params.list}`]))}`,
    '?view=everything&view=everything',
  ])('is refused as %o', async (query) => {
    const { url, token } = await served()
    const response = await fetch(`${url}/stream${query}`, {
      headers: { authorization: `Bearer ${await token()}` },
    })

    expect([response.status, (await response.json()).error.code]).toEqual([400, 'invalid'])
  })
})

describe('a view that a client cannot follow', () => {
  it.each([
    ['unknown_view', { view: 'unknown' }],
    ['unknown_view', { view: '__proto__' }],
    ['unknown_view', { view: 'toString' }],
    ['forbidden', { view: 'everything' }],
    ['forbidden', { view: 'items', params: { list: 'b' } }],
    ['invalid', { view: 'items' }],
    ['invalid', { view: 'items', params: { other: 'a' } }],
    ['invalid', { view: 'items', params: { list: 'a', more: 'b' } }],
    ['invalid', { view: 'items', params: { __proto__: 'a' } }],
  ])('is denied as %s, and the others of the connection go on', async (code, wanted) => {
    const { url, gateway, append } = await served()
    const token = await gateway.grant({ sub: 'u', views: ['items'], sources: ['/v1/monitors/a'] })
    const allowed = { view: 'items', params: { list: 'a' } }
    const stream = await openStream(url, token, [wanted, allowed])

    const { data } = await stream.until('denied')
    await stream.until('current')
    await append(setItem('a', 'x', '1'), setItem('b', 'x', '1'))
    await stream.untilRows((model) => model.rows('items?list=a')['a/x'] !== undefined)

    expect(data.problem.code).toBe(code)
    expect([...stream.model.views.keys()]).toEqual(['items?list=a'])
  })
})

describe('a gateway', () => {
  it('answers elsewhere with 404, and other methods with 405', async () => {
    const { url } = await served()

    expect((await fetch(`${url}/other`)).status).toBe(404)
    expect((await fetch(url.replace('/live', '/'))).status).toBe(404)
    expect((await fetch(url.replace('/live', '/lives/stream'))).status).toBe(404)
    const put = await fetch(`${url}/stream`, { method: 'PUT' })
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, POST'])
  })

  it('can be mounted at another path', async () => {
    const { url, token } = await served({ path: '/a/b/' })
    const stream = await openStream(url.replace('/live', '/a/b'), await token(), [{ view: 'everything' }])

    expect((await stream.until('current')).data).toEqual({ view: 'everything' })
  })
})
