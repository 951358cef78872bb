// @vitest-environment jsdom
import { act, StrictMode, Suspense } from 'react'
import type { ReactNode } from 'react'
import { hydrateRoot } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import type { LiveView } from 'rivulet/live'
import { describe, expect, it, onTestFinished } from 'vitest'
import { useStatus, useSuspenseView, useView } from 'rivulet/react'
import { consoleErrors, setActEnvironment } from './mount.ts'
import { testView } from './store.ts'

/** Renders on the server with one store and hydrates with another, as two machines do. Records each text that is on the screen. */
async function hydrate(server: ReactNode, browser: ReactNode, container: HTMLElement) {
  setActEnvironment()
  document.body.append(container)
  container.innerHTML = renderToString(server)
  const html = container.innerHTML
  const recovered: unknown[] = []
  const root = await act(async () =>
    hydrateRoot(container, <StrictMode>{browser}</StrictMode>, {
      onRecoverableError: (error) => void recovered.push(error),
    }),
  )
  onTestFinished(async () => {
    await act(async () => root.unmount())
    container.remove()
  })
  return { html, recovered }
}

const ROWS: readonly (readonly [string, string])[] = [
  ['a', 'one'],
  ['b', 'two'],
]

describe.each(['useView', 'useSuspenseView'] as const)('hydration with %s', (name) => {
  function setUp() {
    const container = document.createElement('div')
    const texts: string[] = []
    const useRows = name === 'useView' ? useView : useSuspenseView
    function Page({ view }: { view: LiveView<string> }) {
      const text = useRows(view, ({ rows }) => [...rows.values()].join())
      const { state } = useStatus(view)
      return (
        // A ref is set with each commit. React 18 warns of a layout effect on a server.
        <p className={state} ref={() => void texts.push(container.textContent ?? '')}>
          {text}, {state}
        </p>
      )
    }
    const page = (view: LiveView<string>) => (
      <Suspense fallback="waiting">
        <Page view={view} />
      </Suspense>
    )
    return { container, texts, page }
  }

  it('takes what the server has rendered, without a warning, and is live afterwards', async () => {
    const errors = consoleErrors()
    const { container, texts, page } = setUp()
    const view = testView(ROWS)

    const { html, recovered } = await hydrate(page(testView(ROWS)), page(view), container)

    expect(html).toContain('one,two')
    expect([container.textContent, recovered, errors]).toEqual(['one,two, live', [], []])
    expect(view.subscribers()).toBe(2)
    await act(async () => view.set(['b', 'three']))
    expect(container.textContent).toBe('one,three, live')
    expect(texts.filter((text) => !text.startsWith('one,'))).toEqual([])
  })

  it('shows what the server has rendered first when the store has changed since, without a warning', async () => {
    const errors = consoleErrors()
    const { container, texts, page } = setUp()
    const view = testView(ROWS)
    // The page was connected before React hydrated it.
    view.set(['b', 'three'])

    const { recovered } = await hydrate(page(testView(ROWS)), page(view), container)

    expect([container.textContent, recovered, errors]).toEqual(['one,three, live', [], []])
    expect(texts[0]).toBe('one,two, live')
    expect(texts.every((text) => text.startsWith('one,'))).toBe(true)
  })
})

it('loads in the browser what useSuspenseView did not have on the server', async () => {
  consoleErrors()
  function Row({ view }: { view: LiveView<string> }) {
    return useSuspenseView(view, ({ rows }) => rows.get('a'))
  }
  const page = (view: LiveView<string>) => (
    <Suspense fallback="waiting">
      <Row view={view} />
    </Suspense>
  )
  const container = document.createElement('div')
  const view = testView()

  const { html, recovered } = await hydrate(page(testView()), page(view), container)

  expect(html).toContain('waiting')
  expect(String(recovered)).toContain('rows')
  await act(async () => view.set(['a', 'one']))
  expect(container.textContent).toBe('one')
})
