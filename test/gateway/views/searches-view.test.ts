import type { SearchResponse } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { searchEvent } from '../../../src/protocol/gateway-event.ts'
import { rowKey } from '../../../src/protocol/live.ts'
import { searchesView } from '../../../src/gateway/views/searches-view.ts'
import { viewed } from './viewed.ts'
import type { GatewaySearch } from '../../../src/protocol/gateway.ts'

function search(query: string, fields: Partial<GatewaySearch> = {}, key = query) {
  const response: SearchResponse = { results: [{ url: `https://a.example/${query}`, excerpts: [query] }] }
  const data = { sub: 'ada', session: 'session_1', request: { search_queries: [query] }, response, ...fields }
  return searchEvent(data, key, 0)
}

const KEY = rowKey(['ada', 'session_1'])

describe('searchesView', () => {
  it('has the searches of each session, oldest first', async () => {
    const view = await viewed(searchesView())
    const first = search('one')
    await view.rows(first)
    const rows = await view.rows(first, search('two'), search('three', { session: 'session_2' }))

    expect(rows.get(KEY)).toEqual({
      session: 'session_1',
      searches: ['one', 'two'].map((query) => ({
        request: { search_queries: [query] },
        results: [{ url: `https://a.example/${query}`, excerpts: [query] }],
        recorded: expect.any(Number),
      })),
    })
    expect(rows.get(rowKey(['ada', 'session_2']))?.searches).toHaveLength(1)
  })

  it('keeps the last 20 searches of a session, however long they are', async () => {
    const excerpts = Array(100).fill('"ü'.repeat(150))
    const view = await viewed(searchesView())
    const events = Array.from({ length: 25 }, (_, at) =>
      search(`${at}`, { response: { results: [{ url: 'https://a.example', excerpts }] } }),
    )
    const { searches = [] } = (await view.rows(...events)).get(KEY) ?? {}

    expect(searches.map(({ request }) => request.search_queries[0])).toEqual(
      Array.from({ length: 20 }, (_, at) => `${at + 5}`),
    )
    expect(searches[0]).toMatchObject({ truncated: true, results: [{ url: 'https://a.example' }] })
  })

  it('says that a search was already truncated in the log', async () => {
    const view = await viewed(searchesView())

    expect((await view.rows(search('one', { truncated: true }))).get(KEY)?.searches[0]?.truncated).toBe(true)
  })

  it('survives a response without results, and a subject that is no text', async () => {
    const view = await viewed(searchesView())
    const nothing = JSON.parse('{"response":null,"request":null}')
    const rows = await view.rows(search('one', nothing), search('two', JSON.parse('{"sub":"","session":3}')))

    expect([...rows.values()]).toEqual([
      { session: 'session_1', searches: [{ request: null, results: [], recorded: expect.any(Number) }] },
    ])
  })

  it('is visible to a grant of its own subject', () => {
    expect(searchesView().definition.source?.(['ada', 'session_1'])).toBe('/subjects/ada')
  })
})
