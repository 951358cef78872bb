import { body } from './dom.ts'
import { Suspense } from 'react'
import { hydrateRoot } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { LiveError } from 'rivulet/live'
import type { ConnectOptions, Live } from 'rivulet/live'
import { inlineSnapshot, useAddRuns, useSearch, useStatus, useSuspenseView, useView } from 'rivulet/react'
import type { UseAddRunsResult, UseSearchResult } from 'rivulet/react'
import { connectIn } from '../../src/live/connect.ts'
import { platform } from '../../src/live/environment.ts'
import { served, setItem } from '../gateway/fixture.ts'
import type { VIEWS } from '../gateway/fixture.ts'
import { Boundary } from './boundary.ts'
import { consoleErrors, mountOverTime, setActEnvironment } from './mount.ts'

type Views = typeof VIEWS

function connectTo(options: Pick<ConnectOptions, 'url' | 'getToken'> & Partial<ConnectOptions>): Live<Views> {
  // Node has no events of a page.
  const environment = { ...platform(), onPageEvent: () => () => {} }
  const live = connectIn<Views>({ share: false, ...options }, environment)
  onTestFinished(() => live.close())
  return live
}

function Items({ live, list }: { live: Live<Views>; list: string }) {
  const { rows, status } = useView(live.view('items', { list }))
  return `${status.state}: ${[...rows.values()].map(({ value }) => value).join()}`
}

function SuspenseItems({ live, list }: { live: Live<Views>; list: string }) {
  const values = useSuspenseView(live.view('items', { list }), ({ rows }) =>
    [...rows.values()].map(({ value }) => value).join(),
  )
  return <p>{values}</p>
}

/** A page on a slow machine takes a while. */
const PATIENCE = { timeout: 10_000 }

const shows = (text: () => string, expected: string) =>
  vi.waitFor(() => expect(text()).toBe(expected), PATIENCE)

describe('a page over a gateway', () => {
  it('shows the rows of the log and follows it', async () => {
    const errors = consoleErrors()
    const { append, url, token } = await served()
    await append(setItem('fruit', 'a', 'apple'), setItem('tools', 'h', 'hammer'))
    const { text } = mountOverTime(<Items live={connectTo({ url, getToken: token })} list="fruit" />, {
      strict: true,
    })
    await shows(text, 'live: apple')

    await append(setItem('fruit', 'b', 'banana'))
    await shows(text, 'live: apple,banana')
    await append(setItem('fruit', 'a', ''))
    await shows(text, 'live: banana')
    expect(errors).toEqual([])
  })

  it('suspends until the rows have come, also where there are none', async () => {
    const errors = consoleErrors()
    const { append, url, token } = await served()
    const waited = Promise.withResolvers<void>()
    const getToken = () => waited.promise.then(token)
    const { text } = mountOverTime(
      <Suspense fallback="waiting">
        <SuspenseItems live={connectTo({ url, getToken })} list="fruit" />!
      </Suspense>,
      { strict: true },
    )
    await shows(text, 'waiting')
    waited.resolve()
    await shows(text, '!')

    await append(setItem('fruit', 'a', 'apple'))
    await shows(text, 'apple!')
    expect(errors).toEqual([])
  })

  it('throws the refusal of a view that its token does not name to the boundary', async () => {
    consoleErrors()
    const { gateway, url } = await served()
    const live = connectTo({
      url,
      getToken: () => gateway.grant({ sub: 'user_1', views: ['items'], sources: ['/v1/monitors/fruit'] }),
    })
    const caught: unknown[] = []
    const { text } = mountOverTime(
      <>
        <Items live={live} list="fruit" />{' '}
        <Boundary onCaught={(error) => void caught.push(error)}>
          <Suspense fallback="waiting">
            <SuspenseItems live={live} list="tools" />
          </Suspense>
        </Boundary>
      </>,
    )

    await vi.waitFor(() => expect(text()).toMatch(/^live: {2}the grant does not name/), PATIENCE)
    expect(caught[0]).toBeInstanceOf(LiveError)
    expect(caught[0]).toMatchObject({ reason: 'forbidden' })
  })

  it('hydrates what the server has rendered without a warning, and follows the log from there', async () => {
    const errors = consoleErrors()
    const { gateway, append, url, token } = await served()
    await append(setItem('fruit', 'a', '</script>'), setItem('fruit', 'b', 'banana'))
    await vi.waitFor(async () => {
      const { 'items?list=fruit': fruit } = await snapshot()
      expect(fruit?.rows).toHaveLength(2)
    }, PATIENCE)
    async function snapshot() {
      const grant = { sub: 'user_1', views: ['items'], sources: ['*'] }
      return gateway.snapshot(grant, [{ view: 'items', params: { list: 'fruit' } }])
    }

    const texts: string[] = []
    function Page({ live }: { live: Live<Views> }) {
      const { state } = useStatus(live.view('items', { list: 'fruit' }))
      return (
        <Suspense fallback="waiting">
          <SuspenseItems live={live} list="fruit" />
          <i
            hidden={state !== 'live'}
            // Set with each commit. React 18 warns of a layout effect on a server.
            ref={() => void texts.push(body.querySelector('main')?.textContent ?? '')}
          />
        </Suspense>
      )
    }
    const initial = await snapshot()
    const onServer = connectTo({ url, getToken: () => Promise.reject(new Error('unused')), initial })
    const page = renderToString(<Page live={onServer} />)
    body.innerHTML = `<script type="application/json" id="initial">${inlineSnapshot(initial)}</script><main>${page}</main>`
    const main = body.querySelector('main')
    if (main === null) throw new Error('no main')

    const live = connectTo({
      url,
      getToken: token,
      initial: JSON.parse(body.querySelector('#initial')?.textContent ?? ''),
    })
    const recovered: unknown[] = []
    setActEnvironment(false)
    const root = hydrateRoot(main, <Page live={live} />, {
      onRecoverableError: (error) => void recovered.push(error),
    })
    onTestFinished(() => root.unmount())
    await append(setItem('fruit', 'c', 'cherry'))
    await shows(() => main.textContent ?? '', '</script>,banana,cherry')

    expect([recovered, errors]).toEqual([[], []])
    expect(texts.every((text) => text.startsWith('</script>,banana'))).toBe(true)
    await vi.waitFor(() => expect(main.querySelector('i')?.hidden).toBe(false), PATIENCE)
  })

  it('searches and adds runs through the gateway, within the grant', async () => {
    const asked: unknown[] = []
    const { gateway, url } = await served({
      client: {
        search: async (request) => {
          asked.push(request)
          return { results: [{ url: 'https://rivers.example/', title: 'Rivers', excerpts: [] }] }
        },
        taskGroups: { addRuns: () => Promise.reject(new Error('not asked')) },
      },
    })
    const live = connectTo({
      url,
      getToken: () => gateway.grant({ sub: 'user_1', requests: { search: {} } }),
    })
    const page: { searching?: UseSearchResult; adding?: UseAddRunsResult } = {}
    function Page() {
      const searching = useSearch(live, { debounce: 0 })
      const adding = useAddRuns(live)
      Object.assign(page, { searching, adding })
      return `${searching.status} ${searching.results.map(({ title }) => title).join()} ${adding.status}`
    }
    const { text } = mountOverTime(<Page />, { strict: true })
    await shows(text, 'idle  idle')
    page.searching?.search('rivers')
    await shows(text, 'success Rivers idle')
    await page.adding?.addRuns('tgrp_1', { inputs: [{ input: 'rivers' }] })
    await shows(text, 'success Rivers error')

    expect(asked).toEqual([{ search_queries: ['rivers'], mode: 'fast' }])
    expect(page.adding?.error).toMatchObject({ name: 'LiveError', reason: 'forbidden' })
  })
})
