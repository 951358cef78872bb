// @vitest-environment jsdom
import { createRef, Suspense, useState } from 'react'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Live, LiveView, ViewShape } from 'rivulet/live'
import { useStatus, useSuspenseView, useView } from 'rivulet/react'
import { connectIn } from '../../src/live/connect.ts'
import { TestPage, until } from '../live/environment.ts'
import { streamServer } from '../live/stream-server.ts'
import type { StreamConnection, StreamServer } from '../live/stream-server.ts'
import { Boundary } from './boundary.ts'
import { consoleErrors, mountOverTime } from './mount.ts'

interface Shapes extends Record<string, ViewShape<unknown, string>> {
  readonly groups: ViewShape<{ readonly n: number }>
  readonly group: ViewShape<{ readonly n: number }, 'group'>
}

/** A page whose clock the test moves, with sockets that are real. React's own waits go by the same clock. */
function connectTo(server: StreamServer) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const page = new TestPage()
  const live = connectIn<Shapes>({ url: server.url, getToken: () => 'token', share: false }, page)
  onTestFinished(() => live.close())
  const pass = (ms: number) => {
    page.advance(ms)
    vi.advanceTimersByTime(ms)
  }
  return { live, page, pass, soon: (condition: () => boolean) => until(condition, () => pass(1)) }
}

/** A server that sends each view one row, the number of streams before. */
async function counting(): Promise<StreamServer> {
  let streams = 0
  return streamServer({
    onStream(stream) {
      stream.open()
      const n = streams++
      for (const { view, params } of stream.views) {
        const address = params === undefined ? view : `${view}?group=${params['group']}`
        stream
          .send('snapshot', { view: address, first: true, rows: [['a', { n }]], position: '1' })
          .send('current', { view: address })
      }
    },
  })
}

const sum = (rows: ReadonlyMap<string, { readonly n: number }>) => [...rows.values()].map(({ n }) => n).join()

function Groups({ live }: { live: Live<Shapes> }) {
  const { rows, status } = useView(live.view('groups'))
  return `${status.state} ${sum(rows)} ${useStatus(live).state}`
}

function SuspenseGroups({ view }: { view: LiveView<{ readonly n: number }> }) {
  return useSuspenseView(view, ({ rows }) => sum(rows))
}

const deny = (stream: StreamConnection, message: string) =>
  stream.open().send('denied', { view: 'groups', problem: { code: 'forbidden', message } })

describe('a component over a connection', () => {
  it.each([{ strict: false }, { strict: true }])(
    'has one connection for all components, strict mode: $strict',
    async ({ strict }) => {
      const server = await counting()
      const { live, soon } = connectTo(server)
      const { text } = mountOverTime(
        <>
          <Groups live={live} />, <Groups live={live} />
        </>,
        { strict },
      )
      await soon(() => text() === 'live 0 live, live 0 live')

      expect(server.requests).toBe(1)
    },
  )

  it('ends with the last of params that change quickly, and asks for as many views as a gateway takes', async () => {
    const server = await counting()
    const { live, soon } = connectTo(server)
    let go: (group: string) => void = () => {}
    function Page() {
      const [group, setGroup] = useState('tgrp_0')
      go = setGroup
      const { rows, ready } = useView(live.view('group', { group }))
      return `${group} ${ready ? sum(rows) : 'waiting'}`
    }
    const { text } = mountOverTime(<Page />, { strict: true })
    await soon(() => text() === 'tgrp_0 0')

    for (let index = 1; index <= 200; index++) {
      go(`tgrp_${index}`)
      await soon(() => text().startsWith(`tgrp_${index} `))
    }
    await soon(() => /^tgrp_200 \d+/.test(text()))

    expect(Math.max(...server.streams.map(({ views }) => views.length))).toBeLessThanOrEqual(64)
  })

  it('throws what the gateway refuses, and asks again when the boundary is reset by one who has read it', async () => {
    consoleErrors()
    const server = await streamServer()
    const { live, page, soon, pass } = connectTo(server)
    const boundary = createRef<Boundary>()
    const { text } = mountOverTime(
      <Boundary ref={boundary}>
        <Suspense fallback="waiting">
          <SuspenseGroups view={live.view('groups')} />
        </Suspense>
      </Boundary>,
    )
    await soon(() => server.streams.length === 1)
    deny(await server.stream(0), 'not for you')
    await soon(() => text().includes('not for you'))

    pass(1_000)
    boundary.current?.reset()
    const resetAt = page.now()
    await soon(() => server.streams.length === 2)
    // At once, and not when the view is no longer kept.
    expect(page.now() - resetAt).toBeLessThan(1_000)
    expect(text()).toBe('waiting')
    deny(await server.stream(1), 'still refused')
    await soon(() => text().includes('still refused'))

    pass(1_000)
    boundary.current?.reset()
    await soon(() => server.streams.length === 3)
    const stream = await server.stream(2)
    stream
      .open()
      .send('snapshot', { view: 'groups', first: true, rows: [['a', { n: 7 }]], position: '1' })
      .send('current', { view: 'groups' })
    await soon(() => text() !== 'waiting')

    expect(text()).toBe('7')
  })

  it('asks a gateway that refuses no more than once a second when the boundary resets itself', async () => {
    consoleErrors()
    const server = await streamServer({ onStream: (stream) => deny(stream, 'no') })
    const { live, soon, pass } = connectTo(server)
    const boundary = createRef<Boundary>()
    const { text } = mountOverTime(
      <Boundary ref={boundary}>
        <Suspense fallback="waiting">
          <SuspenseGroups view={live.view('groups')} />
        </Suspense>
      </Boundary>,
    )
    await soon(() => text() === 'no')

    for (let time = 0; time < 50; time++) {
      pass(100)
      boundary.current?.reset()
      let turns = 0
      await soon(() => ++turns > 20)
    }

    expect(server.requests).toBeGreaterThan(2)
    expect(server.requests).toBeLessThan(15)
  })
})
