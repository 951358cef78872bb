import { Suspense } from 'react'
import { renderToReadableStream, renderToString } from 'react-dom/server'
import type { LiveView } from 'rivulet/live'
import { describe, expect, it } from 'vitest'
import { useSearch, useStatus, useSuspenseView, useView } from 'rivulet/react'
import { testView } from './store.ts'

function Rows({ view }: { view: LiveView<string> }) {
  const { rows, ready } = useView(view)
  return ready ? <p>{[...rows.values()].join()}</p> : <p>no rows yet</p>
}

function SuspenseRows({ view }: { view: LiveView<string> }) {
  return <p>{useSuspenseView(view, ({ rows }) => [...rows.values()].join())}</p>
}

async function streamed(view: LiveView<string>) {
  const errors: unknown[] = []
  const stream = await renderToReadableStream(
    <Suspense fallback="waiting">
      <SuspenseRows view={view} />
    </Suspense>,
    { onError: (error) => void errors.push(error) },
  )
  await stream.allReady
  return { html: await new Response(stream).text(), errors }
}

describe('on a server, where there is no document', () => {
  it('useView shows the rows of the snapshot, and subscribes to nothing', () => {
    const [view, empty] = [testView([['a', 'one']]), testView()]

    expect(renderToString(<Rows view={view} />)).toBe('<p>one</p>')
    expect(renderToString(<Rows view={empty} />)).toBe('<p>no rows yet</p>')
    expect([view.subscriptions(), empty.subscriptions()]).toEqual([0, 0])
  })

  it('useSuspenseView shows the rows of the snapshot, and subscribes to nothing', async () => {
    const view = testView([['a', 'one']])

    const { html, errors } = await streamed(view)

    expect(html).toContain('<p>one</p>')
    expect(errors).toEqual([])
    expect(view.subscriptions()).toBe(0)
  })

  it('useSuspenseView leaves a view without rows to the browser, and says so, instead of waiting for ever', async () => {
    const view = testView()

    const { html, errors } = await streamed(view)

    expect(html).toContain('waiting')
    expect(String(errors)).toContain(
      'the server has no rows of the view rows: pass them to connect as `initial`',
    )
    expect(view.subscriptions()).toBe(0)
  })

  it('useStatus and useSearch are at their beginning', () => {
    const view = testView([['a', 'one']])
    const live = {
      status: { subscribe: () => () => {}, getSnapshot: () => ({ state: 'live', since: 5 }) as const },
      search: () => Promise.reject(new Error('unexpected')),
    }
    function Page() {
      return [useStatus(live).state, useStatus(view).state, useSearch(live).status].join()
    }

    expect(renderToString(<Page />)).toBe('connecting,live,idle')
  })
})
