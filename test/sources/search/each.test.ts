import type { IncomingMessage, ServerResponse } from 'node:http'
import { from, lastValueFrom, Observable, Subject, take, throwError, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { ArgumentError, AuthenticationError, createClient, PaymentRequiredError } from 'rivulet'
import type { ClientOptions, SearchOutcome, SearchQueries } from 'rivulet'
import { Gate, underGate } from 'rivulet/operators'
import { answer, serve } from '../../support/serve.ts'
import { bodyOf } from '../../transport/server.ts'

/** A server that holds each search until it is answered here, and a client of it. */
async function held(settings: ClientOptions = {}) {
  const pending = new Map<string, ServerResponse>()
  const asked: string[] = []
  const arrivals = new Subject<string>()
  let most = 0
  const baseUrl = await serve(async (request: IncomingMessage, response) => {
    const query = String(JSON.parse(await bodyOf(request)).search_queries[0])
    asked.push(query)
    pending.set(query, response)
    response.once('close', () => pending.delete(query))
    most = Math.max(most, pending.size)
    arrivals.next(query)
  })
  const reply = (query: string, status = 200) => {
    const response = pending.get(query)
    pending.delete(query)
    if (response === undefined) throw new Error(`${query} is not pending`)
    answer(response, status === 200 ? { results: [], search_id: query } : {}, status)
  }
  return {
    client: createClient({ baseUrl, apiKey: 'k', retries: 0, ...settings }),
    asked,
    reply,
    most: () => most,
    /** Resolves when this search is pending. */
    async has(query: string) {
      while (!pending.has(query)) await lastValueFrom(arrivals.pipe(take(1)))
    },
    /** Replies to each search as it arrives. */
    replyAll: () => arrivals.subscribe((query) => reply(query)),
  }
}

const idOf = ({ response, error }: SearchOutcome) => response?.search_id ?? error?.name

describe('client.search.each', () => {
  it('emits the response to each query, in the order of the queries, with few in progress', async () => {
    const { client, replyAll, most } = await held()
    replyAll()
    const queries = Array.from({ length: 30 }, (_, index) => `q${index}`)

    const outcomes = await lastValueFrom(client.search.each(queries).pipe(toArray()))

    expect(outcomes.map(idOf)).toEqual(queries)
    expect(outcomes[3]?.request).toEqual({ search_queries: ['q3'] })
    expect(most()).toBeLessThanOrEqual(4)
  })

  it('takes whole requests, and asks for as many at once as it is told', async () => {
    const { client, has, reply, asked } = await held()
    const queries = ['a', { search_queries: ['b'], mode: 'fast' }, 'c'] as const
    const outcomes = lastValueFrom(client.search.each(queries, { concurrency: 2 }).pipe(toArray()))
    await has('a')
    await has('b')
    expect(asked).toHaveLength(2)

    reply('a')
    await has('c')
    reply('b')
    reply('c')

    expect((await outcomes).map(({ request }) => request)).toEqual([
      { search_queries: ['a'] },
      queries[1],
      { search_queries: ['c'] },
    ])
  })

  it('waits for an earlier search when it is ordered, and reads no further', async () => {
    const { client, has, reply, asked } = await held()
    const outcomes = lastValueFrom(client.search.each(['a', 'b', 'c'], { concurrency: 2 }).pipe(toArray()))
    await has('b')
    reply('b')
    await has('a')
    expect(asked.toSorted()).toEqual(['a', 'b'])

    reply('a')
    await has('c')
    reply('c')

    expect((await outcomes).map(idOf)).toEqual(['a', 'b', 'c'])
  })

  it('emits in the order of the responses when it is not ordered', async () => {
    const { client, has, reply } = await held()
    const ids: unknown[] = []
    const done = client.search
      .each(['a', 'b', 'c'], { concurrency: 2, ordered: false })
      .forEach((outcome) => ids.push(idOf(outcome)))
    await has('b')
    reply('b')
    await has('c')
    reply('c')
    await has('a')
    reply('a')
    await done

    expect(ids[0]).toBe('b')
    expect(ids.toSorted()).toEqual(['a', 'b', 'c'])
  })

  it('emits a failed search with its error, and loses no other', async () => {
    const { client, has, reply } = await held()
    const outcomes = lastValueFrom(client.search.each(['a', 'b', 'c']).pipe(toArray()))
    for (const query of ['a', 'b', 'c']) await has(query)
    reply('a')
    reply('b', 402)
    reply('c')

    const [first, second, third] = await outcomes

    expect([first, third].map((outcome) => outcome && idOf(outcome))).toEqual(['a', 'c'])
    expect(second?.request).toEqual({ search_queries: ['b'] })
    expect(second?.error).toBeInstanceOf(PaymentRequiredError)
  })

  it('emits an invalid query of a stream with its error', async () => {
    const { client, replyAll } = await held()
    replyAll()

    const outcomes = await lastValueFrom(client.search.each(from(['', 'a'])).pipe(toArray()))

    expect(outcomes.map(idOf)).toEqual(['ArgumentError', 'a'])
  })

  it('errors when the service rejects the key', async () => {
    const { client, has, reply } = await held()
    const outcomes = lastValueFrom(client.search.each(['a', 'b'], { concurrency: 1 }))
    await has('a')
    reply('a', 401)

    await expect(outcomes).rejects.toBeInstanceOf(AuthenticationError)
  })

  it.each<[string, () => SearchQueries]>([
    ['a set', () => new Set(['a', 'b'])],
    [
      'a generator',
      function* () {
        yield 'a'
        yield 'b'
      },
    ],
    [
      'an async generator',
      async function* () {
        yield 'a'
        yield 'b'
      },
    ],
    ['an Observable', () => from(['a', 'b'])],
  ])('takes queries of %s', async (_, queries) => {
    const { client, replyAll } = await held()
    replyAll()

    const outcomes = await lastValueFrom(client.search.each(queries()).pipe(toArray()))

    expect(outcomes.map(idOf)).toEqual(['a', 'b'])
  })

  it('emits a response while the next query is not known yet', async () => {
    const { client, replyAll } = await held()
    replyAll()
    const queries = new Subject<string>()
    const first = lastValueFrom(client.search.each(queries).pipe(take(1)))

    queries.next('a')

    expect(idOf(await first)).toBe('a')
  })

  it('errors with the error of the queries', async () => {
    const { client } = await held()
    const wrong = new Error('no queries')

    await expect(lastValueFrom(client.search.each(throwError(() => wrong)))).rejects.toBe(wrong)
  })

  it('completes when there are no queries', async () => {
    const { client } = await held()

    expect(await lastValueFrom(client.search.each([]).pipe(toArray()))).toEqual([])
  })

  it('reads no more queries than it has in progress while its consumer pauses', async () => {
    const { client, replyAll, asked } = await held()
    replyAll()
    let read = 0
    function* endless() {
      for (;;) yield `q${read++}`
    }
    const gate = new Gate()
    const ids: unknown[] = []
    const fifth = Promise.withResolvers<void>()
    const subscription = client.search
      .each(endless(), { concurrency: 2 })
      .pipe(underGate(gate))
      .subscribe((outcome) => {
        ids.push(idOf(outcome))
        if (ids.length === 5) {
          gate.close()
          fifth.resolve()
        }
      })
    await fifth.promise
    await client.search({ search_queries: ['other'] })
    expect(ids).toHaveLength(5)
    expect(read).toBeLessThanOrEqual(8)

    gate.open()
    await client.search({ search_queries: ['another'] })
    expect(ids.length).toBeGreaterThan(5)
    subscription.unsubscribe()
    expect(asked.length).toBeGreaterThan(5)
  })

  it('destroys its requests and ends the iteration when it is unsubscribed from', async () => {
    const { client, has } = await held()
    const ended = Promise.withResolvers<string>()
    function* queries() {
      try {
        yield 'a'
        yield 'b'
      } finally {
        ended.resolve('ended')
      }
    }
    const subscription = client.search.each(queries(), { concurrency: 1 }).subscribe()
    await has('a')

    subscription.unsubscribe()

    expect(await ended.promise).toBe('ended')
  })

  it('checks its arguments at the call', () => {
    const { search } = createClient({ baseUrl: 'http://localhost', apiKey: 'k' })

    expect(() => search.each(['a', ''])).toThrow(ArgumentError)
    expect(() => search.each('a query' as unknown as SearchQueries)).toThrow('queries must be')
    expect(() => search.each(null as unknown as SearchQueries)).toThrow('queries must be')
    expect(() => search.each(['a'], { concurrency: 0 })).toThrow('concurrency must be')
    expect(() => search.each(new Observable<string>())).not.toThrow()
  })
})
