// @vitest-environment jsdom
import { startTransition, useDeferredValue, useEffect, useLayoutEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import type { LiveView } from 'rivulet/live'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { useSuspenseView, useView } from 'rivulet/react'
import { setActEnvironment } from './mount.ts'
import { testView } from './store.ts'

// The rendering must yield as it does in a browser, which `act` prevents.
beforeAll(() => setActEnvironment(false))

type UseRow = (view: LiveView<string>) => string | undefined
const READERS = ['1', '2', '3', '4', '5', '6']

const hooks: Readonly<Record<string, UseRow>> = {
  useView: (view) => useView(view, ({ rows }) => rows.get('a')),
  useSuspenseView: (view) => useSuspenseView(view, ({ rows }) => rows.get('a')),
}

/** As many hooks on the web are written: what changes between the rendering and the effect tears. */
const useNaively: UseRow = (view) => {
  const [row, setRow] = useState(() => view.getSnapshot().rows.get('a'))
  useEffect(() => view.subscribe(({ rows }) => setRow(rows.get('a'))), [view])
  return row
}

/** React takes each component for a slow one, after which it yields to other tasks. */
function yieldAfterEachComponent(): () => void {
  let skew = 0
  const { now } = performance
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + skew)
  onTestFinished(() => spy.mockRestore())
  return () => (skew += 10)
}

type Trigger = 'startTransition' | 'useDeferredValue'

/** Each text that was committed while six components were rendered concurrently, with a change of the store amid them. */
async function committed(useRow: UseRow, trigger: Trigger): Promise<string[]> {
  const view = testView([['a', 'old']])
  const slow = yieldAfterEachComponent()
  const texts: string[] = []
  const container = document.createElement('div')
  let rendered = 0
  function Reader() {
    slow()
    // The task runs when this rendering yields.
    if (++rendered === READERS.length / 2) setImmediate(() => view.set(['a', 'new']))
    const row = useRow(view)
    useLayoutEffect(() => void texts.push(container.textContent ?? ''))
    return `${row} `
  }
  const mounted = Promise.withResolvers<() => void>()
  function Page() {
    const [isShown, setShown] = useState(false)
    const deferred = useDeferredValue(isShown)
    useEffect(() => {
      const show = () => setShown(true)
      mounted.resolve(trigger === 'startTransition' ? () => startTransition(show) : show)
    }, [])
    return (
      (trigger === 'startTransition' ? isShown : deferred) && READERS.map((name) => <Reader key={name} />)
    )
  }
  const root = createRoot(container)
  onTestFinished(() => root.unmount())
  root.render(<Page />)
  const show = await mounted.promise
  show()
  await vi.waitFor(() => expect(container.textContent).toContain('new'), { timeout: 10_000 })
  return texts
}

const isTorn = (text: string) => new Set(text.trim().split(' ')).size > 1

describe.each<Trigger>(['startTransition', 'useDeferredValue'])(
  'a change amid a rendering by %s',
  (trigger) => {
    it.each(Object.keys(hooks))('is never seen by some components alone: %s', async (name) => {
      const texts = await committed(hooks[name] ?? useNaively, trigger)

      expect(texts.length).toBeGreaterThan(0)
      expect(texts.filter(isTorn)).toEqual([])
    })

    it('tears with a hook of useState and useEffect, so this test can fail', async () => {
      const texts = await committed(useNaively, trigger)

      expect(texts.filter(isTorn)).not.toEqual([])
    })
  },
)
