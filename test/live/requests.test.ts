import { json } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { serve } from '../support/serve.ts'
import { TestPage, until } from './environment.ts'
import { connectTo, tokenOf } from './pages.ts'

interface Received {
  readonly url: string | undefined
  readonly token: string | undefined
  readonly body: unknown
}

/** A gateway that answers each request in turn: a status with a body, or a cut. */
async function answering(
  ...answers: readonly (readonly [status: number, body: unknown, retryAfter?: string] | 'cut' | 'hang')[]
) {
  const received: Received[] = []
  const origin = await serve((request, response) => {
    void json(request).then((body) => {
      const answer = answers[received.length] ?? 'cut'
      received.push({ url: request.url, token: request.headers.authorization, body })
      if (answer === 'hang') return
      if (answer === 'cut') return response.destroy()
      const [status, content, retryAfter] = answer
      if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
      return response.writeHead(status).end(typeof content === 'string' ? content : JSON.stringify(content))
    })
  })
  return { url: `${origin}/live/`, received }
}

const ADDED = { run_ids: ['trun_1'] }
const inputs = [{ input: 'rivers', processor: 'base' }]

describe('search', () => {
  it('sends the request with a token, which it uses again while it is good', async () => {
    const page = new TestPage()
    const { url, received } = await answering([200, { results: [] }], [200, { results: [] }])
    let tokens = 0
    const live = connectTo(url, page, {
      getToken: () => tokenOf('user_1', { n: ++tokens, exp: page.now() / 1_000 + 60 }),
    })
    expect(await live.search({ search_queries: ['rivers'] })).toEqual({ results: [] })
    await live.search({ search_queries: ['brooks'] })

    expect(received.map(({ url: path, body }) => [path, body])).toEqual([
      ['/live/search', { search_queries: ['rivers'] }],
      ['/live/search', { search_queries: ['brooks'] }],
    ])
    expect(tokens).toBe(1)
    expect(received[1]?.token).toBe(received[0]?.token)
  })

  it('rejects with the refusal of the gateway, and when to try again', async () => {
    const { url } = await answering([429, { error: { code: 'too_many', message: 'Slow down' } }, '3'])
    await expect(connectTo(url, new TestPage()).search({ search_queries: ['rivers'] })).rejects.toMatchObject(
      {
        name: 'LiveError',
        reason: 'too_many',
        message: 'Slow down',
        retryAfter: 3_000,
      },
    )
  })

  it.each([
    ['text', '<html>'],
    ['a list', []],
  ])('rejects an answer that is %s', async (_, body) => {
    const { url } = await answering([200, body])
    await expect(connectTo(url, new TestPage()).search({ search_queries: ['rivers'] })).rejects.toMatchObject(
      {
        name: 'LiveError',
        reason: 'protocol',
      },
    )
  })

  it("rejects with the signal's reason, before and after it was sent", async () => {
    const { url, received } = await answering('hang')
    const live = connectTo(url, new TestPage())
    const reason = new Error('the user went on')
    await expect(live.search({ search_queries: ['a'] }, { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    )
    const ended = new AbortController()
    const search = live.search({ search_queries: ['b'] }, { signal: ended.signal })
    await until(() => received.length === 1)
    ended.abort(reason)
    await expect(search).rejects.toBe(reason)
    expect(received.map(({ body }) => body)).toEqual([{ search_queries: ['b'] }])
  })

  it('is given up after two minutes without an answer', async () => {
    const page = new TestPage()
    const { url, received } = await answering('hang')
    const search = connectTo(url, page).search({ search_queries: ['rivers'] })
    void until(() => received.length === 1).then(() => page.advance(120_000))
    await expect(search).rejects.toMatchObject({ name: 'LiveError', reason: 'timeout' })
    expect(page.left).toBe(0)
  })
})

describe('addRuns', () => {
  it('sends the group with the runs', async () => {
    const { url, received } = await answering([200, ADDED])
    expect(await connectTo(url, new TestPage()).addRuns('tgrp_1', { inputs })).toEqual(ADDED)
    expect(received.map(({ url: path, body }) => [path, body])).toEqual([
      ['/live/runs', { group: 'tgrp_1', inputs }],
    ])
  })

  it('is sent once more, with a new token, only where the token was refused', async () => {
    const { url, received } = await answering(
      [401, { error: { code: 'expired', message: '' } }],
      [200, ADDED],
    )
    let tokens = 0
    const live = connectTo(url, new TestPage(), { getToken: () => `token_${++tokens}` })
    expect(await live.addRuns('tgrp_1', { inputs })).toEqual(ADDED)
    expect(received.map(({ token }) => token)).toEqual(['Bearer token_1', 'Bearer token_2'])
  })

  it('rejects where the second token is refused as well', async () => {
    const refusal = [401, { error: { code: 'revoked', message: 'No more' } }] as const
    const { url, received } = await answering(refusal, refusal, [200, ADDED])
    await expect(connectTo(url, new TestPage()).addRuns('tgrp_1', { inputs })).rejects.toMatchObject({
      reason: 'revoked',
    })
    expect(received).toHaveLength(2)
  })

  it.each([
    ['is cut off', 'cut', 'network'],
    ['fails in a proxy', [502, '<html>'], 'uncertain'],
    ['gets no reason', [503, {}, '1'], 'uncertain'],
    ['is refused for now', [503, { error: { code: 'unavailable', message: '' } }, '1'], 'unavailable'],
    [
      'has an uncertain end',
      [504, { error: { code: 'uncertain', message: 'It may have been taken' } }],
      'uncertain',
    ],
  ] as const)('is never sent twice where it %s', async (_, answer, reason) => {
    const { url, received } = await answering(answer, [200, ADDED])
    await expect(connectTo(url, new TestPage()).addRuns('tgrp_1', { inputs })).rejects.toMatchObject({
      name: 'LiveError',
      reason,
    })
    expect(received).toHaveLength(1)
  })
})
