// @vitest-environment jsdom
import { act } from 'react'
import type { AddRunsRequest, AddRunsResponse, SearchRequest, SearchResponse } from 'rivulet'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { useAddRuns, useSearch } from 'rivulet/react'
import type { UseAddRunsResult, UseSearchResult } from 'rivulet/react'
import { mount } from './mount.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
})

const pass = (ms: number) => act(async () => vi.advanceTimersByTime(ms))

/** A connection whose answers the test gives. It ignores signals, as an answer that is on its way does. */
function searchable() {
  const requests: { readonly request: SearchRequest; readonly signal: AbortSignal | undefined }[] = []
  const answers: PromiseWithResolvers<SearchResponse>[] = []
  return {
    requests,
    queries: () => requests.map(({ request }) => request.search_queries[0]),
    aborted: () => requests.map(({ signal }) => signal?.aborted),
    answer: (index: number, url: string) =>
      act(async () => answers[index]?.resolve({ session_id: 'session_1', results: [{ url, excerpts: [] }] })),
    fail: (index: number, error: unknown) => act(async () => answers[index]?.reject(error)),
    search(request: SearchRequest, { signal }: { readonly signal?: AbortSignal } = {}) {
      requests.push({ request, signal })
      const answer = Promise.withResolvers<SearchResponse>()
      answers.push(answer)
      return answer.promise
    },
  }
}

type Searchable = ReturnType<typeof searchable>

async function mountSearch(live: Searchable, strict: boolean) {
  let found: UseSearchResult | undefined
  function Search({ of }: { of: Searchable }) {
    found = useSearch(of)
    return `${found.status}: ${found.results.map(({ url }) => url).join()}`
  }
  const mounted = await mount(<Search of={live} />, { strict })
  const result = () => {
    if (found === undefined) throw new Error('not rendered')
    return found
  }
  return {
    ...mounted,
    result,
    rerender: (other: Searchable) => mounted.render(<Search of={other} />),
    type: (query: string | SearchRequest) => act(async () => result().search(query)),
  }
}

describe.each([{ strict: false }, { strict: true }])('useSearch, strict mode: $strict', ({ strict }) => {
  it('sends the last of the texts that are typed, 250 ms after it', async () => {
    const live = searchable()
    const { text, type } = await mountSearch(live, strict)
    expect(text()).toBe('idle: ')

    for (const query of ['r', 'ri', 'riv']) {
      await type(query)
      await pass(249)
    }
    expect(live.requests).toEqual([])
    expect(text()).toBe('pending: ')
    await pass(1)

    expect(live.requests.map(({ request }) => request)).toEqual([{ search_queries: ['riv'], mode: 'fast' }])
    await live.answer(0, 'https://rivers.example/')
    expect(text()).toBe('success: https://rivers.example/')
  })

  it('keeps the last results until the next ones, and goes on with their session', async () => {
    const live = searchable()
    const { text, type } = await mountSearch(live, strict)
    await type('rivers')
    await pass(250)
    await live.answer(0, 'https://rivers.example/')
    await type('brooks')
    await pass(250)

    expect(text()).toBe('pending: https://rivers.example/')
    expect(live.requests[1]?.request).toMatchObject({ session_id: 'session_1' })
    await live.answer(1, 'https://brooks.example/')
    expect(text()).toBe('success: https://brooks.example/')
  })

  it('aborts the request before, and ignores its answer and its failure', async () => {
    const live = searchable()
    const { text, type } = await mountSearch(live, strict)
    for (const query of ['rivers', 'brooks', 'lakes']) {
      await type(query)
      await pass(250)
    }
    expect(live.aborted()).toEqual([true, true, false])

    await live.answer(2, 'https://lakes.example/')
    await live.answer(0, 'https://rivers.example/')
    await live.fail(1, new Error('too late'))

    expect(text()).toBe('success: https://lakes.example/')
  })

  it('has the error of a search beside the results of the one before, until the next one', async () => {
    const live = searchable()
    const { result, type } = await mountSearch(live, strict)
    await type('rivers')
    await pass(250)
    await live.answer(0, 'https://rivers.example/')
    await type('brooks')
    await pass(250)
    await live.fail(1, new Error('too many'))

    expect(result()).toMatchObject({
      status: 'error',
      error: { message: 'too many' },
      results: [{ url: 'https://rivers.example/' }],
    })
    await type('lakes')
    expect(result()).toMatchObject({ status: 'pending', error: undefined })
  })

  it('ends with an empty text: no request, no results', async () => {
    const live = searchable()
    const { text, type } = await mountSearch(live, strict)
    await type('rivers')
    await pass(250)
    await live.answer(0, 'https://rivers.example/')
    await type('brooks')
    await type('  ')

    expect(text()).toBe('idle: ')
    await pass(1_000)
    expect(live.queries()).toEqual(['rivers'])
  })

  it('sends a whole request as it is', async () => {
    const live = searchable()
    const { type } = await mountSearch(live, strict)
    const request: SearchRequest = { search_queries: ['a', 'b'], objective: 'both', mode: 'advanced' }
    await type(request)
    await pass(250)

    expect(live.requests[0]?.request).toBe(request)
  })

  it('leaves nothing after an unmount: the timer is cleared, the request aborted', async () => {
    const live = searchable()
    const first = await mountSearch(live, strict)
    await first.type('rivers')
    await pass(250)
    await first.type('brooks')
    await pass(250)
    await first.unmount()
    const second = await mountSearch(live, strict)
    await second.type('lakes')
    await second.unmount()
    await pass(1_000)

    expect(live.aborted()).toEqual([true, true])
    expect(vi.getTimerCount()).toBe(0)
    await live.answer(1, 'https://brooks.example/')
  })

  it('shows nothing of a connection that it is no longer given', async () => {
    const [live, other] = [searchable(), searchable()]
    const { text, type, rerender } = await mountSearch(live, strict)
    await type('rivers')
    await pass(250)
    await live.answer(0, 'https://rivers.example/')
    await type('brooks')
    await pass(250)

    await rerender(other)

    expect(text()).toBe('idle: ')
    expect(live.aborted().at(-1)).toBe(true)
    await live.answer(1, 'https://brooks.example/')
    expect(text()).toBe('idle: ')
    await type('lakes')
    await pass(250)
    expect(other.requests[0]?.request).toEqual({ search_queries: ['lakes'], mode: 'fast' })
  })

  it('has the same function in each rendering', async () => {
    const live = searchable()
    const { result, type } = await mountSearch(live, strict)
    const { search } = result()
    await type('rivers')

    expect(result().search).toBe(search)
  })
})

describe('useAddRuns', () => {
  const RUNS: AddRunsRequest = { inputs: [{ input: 'rivers', processor: 'base' }] }
  const ANSWER: AddRunsResponse = {
    status: {
      num_task_runs: 1,
      task_run_status_counts: {},
      is_active: true,
      status_message: null,
      modified_at: null,
    },
    run_ids: ['trun_1'],
    run_cursor: null,
    event_cursor: null,
  }

  it('has the answer or the error of the last call, and never rejects', async () => {
    const answers: PromiseWithResolvers<AddRunsResponse>[] = []
    const asked: unknown[] = []
    const live = {
      addRuns: (group: string, request: AddRunsRequest) => {
        asked.push([group, request])
        const answer = Promise.withResolvers<AddRunsResponse>()
        answers.push(answer)
        return answer.promise
      },
    }
    let adding: UseAddRunsResult | undefined
    function Add() {
      adding = useAddRuns(live)
      return adding.status
    }
    const { text } = await mount(<Add />, { strict: true })
    let first: Promise<unknown> | undefined
    await act(async () => void (first = adding?.addRuns('tgrp_1', RUNS)))
    expect([text(), asked]).toEqual(['pending', [['tgrp_1', RUNS]]])
    await act(async () => answers[0]?.reject(new Error('forbidden')))
    expect([text(), adding?.error?.message, await first]).toEqual(['error', 'forbidden', undefined])

    await act(async () => void adding?.addRuns('tgrp_1', RUNS))
    await act(async () => void adding?.addRuns('tgrp_1', RUNS))
    await act(async () => answers[1]?.reject(new Error('late')))
    await act(async () => answers[2]?.resolve(ANSWER))

    expect([text(), adding?.error, adding?.response]).toEqual(['success', undefined, ANSWER])
  })
})
