// @vitest-environment jsdom
import { act, createRef, startTransition, Suspense, useState } from 'react'
import type { ReactNode } from 'react'
import type { LiveView } from 'rivulet/live'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { prefetchView, useSuspenseView } from 'rivulet/react'
import { Boundary } from './boundary.ts'
import { consoleErrors, mount } from './mount.ts'
import { testView } from './store.ts'

const SECOND = 1_000

let attempts = 0
let errors: readonly unknown[][] = []

beforeEach(() => {
  attempts = 0
  errors = consoleErrors()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
})

const pass = (ms: number) => act(async () => vi.advanceTimersByTime(ms))

function Row({ view, name = 'a' }: { view: LiveView<string>; name?: string }) {
  attempts++
  return useSuspenseView(view, ({ rows }) => rows.get(name) ?? 'no row')
}

const waiting = (node: ReactNode) => <Suspense fallback="waiting">{node}</Suspense>

describe.each([{ strict: false }, { strict: true }])(
  'useSuspenseView, strict mode: $strict',
  ({ strict }) => {
    it('suspends until the first rows, and shows each change afterwards', async () => {
      const view = testView()
      const { text } = await mount(waiting(<Row view={view} />), { strict })
      expect(text()).toBe('waiting')
      expect(view.subscribers()).toBe(1)

      await act(async () => view.set(['a', 'one']))
      expect(text()).toBe('one')
      await act(async () => view.set(['a', 'two']))
      expect(text()).toBe('two')
    })

    it('does not render again while it waits and nothing comes', async () => {
      const view = testView()
      await mount(waiting(<Row view={view} />), { strict })
      const before = attempts

      await pass(20 * SECOND)
      await act(async () => view.enter('offline'))

      expect(attempts).toBe(before)
    })

    it('leaves neither subscription nor timer after an unmount', async () => {
      const view = testView()
      const { unmount } = await mount(waiting(<Row view={view} />), { strict })
      await act(async () => view.set(['a', 'one']))
      expect(view.subscribers()).toBe(1)

      await unmount()

      expect(view.subscribers()).toBe(0)
      expect(vi.getTimerCount()).toBe(0)
    })

    it('follows a view without rows for half a minute after an unmount, which React does not report', async () => {
      const view = testView()
      const { unmount } = await mount(waiting(<Row view={view} />), { strict })
      await unmount()

      await pass(30 * SECOND)

      expect(view.subscribers()).toBe(0)
      expect(vi.getTimerCount()).toBe(0)
    })

    it('goes on waiting beyond this half minute while it is mounted', async () => {
      const view = testView()
      const { text } = await mount(waiting(<Row view={view} />), { strict })
      for (let minute = 0; minute < 3; minute++) await pass(30 * SECOND)
      expect([text(), view.subscribers()]).toEqual(['waiting', 1])

      await act(async () => view.set(['a', 'one']))

      expect(text()).toBe('one')
      await pass(5 * SECOND)
      expect(vi.getTimerCount()).toBe(0)
    })

    it('throws the error of a view that is denied, and asks again when the boundary is reset', async () => {
      const view = testView()
      const boundary = createRef<Boundary>()
      const node = <Boundary ref={boundary}>{waiting(<Row view={view} />)}</Boundary>
      const { text } = await mount(node, { strict })

      await act(async () => view.enter('denied', new Error('forbidden')))
      expect(text()).toBe('forbidden')
      await pass(SECOND)
      expect(view.subscribers()).toBe(0)

      const earlier = view.subscriptions()
      view.enter('connecting')
      await act(async () => boundary.current?.reset())
      expect(text()).toBe('waiting')
      expect(view.subscriptions()).toBe(earlier + 1)
      await act(async () => view.set(['a', 'one']))
      expect(text()).toBe('one')
    })

    it('throws the error of a view that is denied while it is shown', async () => {
      const view = testView([['a', 'one']])
      const { text } = await mount(<Boundary>{waiting(<Row view={view} />)}</Boundary>, { strict })
      expect(text()).toBe('one')

      await act(async () => view.enter('denied', new Error('revoked')))

      expect(text()).toBe('revoked')
      expect(view.subscribers()).toBe(0)
      expect(vi.getTimerCount()).toBe(0)
    })

    it('asks the gateway before it throws what was denied to an earlier component', async () => {
      const view = testView()
      view.enter('denied', new Error('forbidden'))
      let answered = false
      const asking = {
        ...view,
        // As a store that connects again.
        subscribe: (listener: Parameters<typeof view.subscribe>[0]) => {
          if (!answered) view.enter('connecting')
          answered = true
          return view.subscribe(listener)
        },
      }
      const { text } = await mount(<Boundary>{waiting(<Row view={asking} />)}</Boundary>, { strict })
      expect(text()).toBe('waiting')
      await act(async () => view.set(['a', 'one']))
      expect(text()).toBe('one')
    })

    it('keeps the former view on the screen while a transition waits for the next, for any time', async () => {
      const first = testView([['a', 'one']])
      const second = testView()
      let go: (view: LiveView<string>) => void = () => {}
      function Page() {
        const [view, setView] = useState<LiveView<string>>(first)
        go = setView
        return waiting(<Row view={view} />)
      }
      const { text } = await mount(<Page />, { strict })

      await act(async () => startTransition(() => go(second)))
      expect([text(), second.subscribers()]).toEqual(['one', 1])
      // Waits that were over and began again.
      await pass(30 * SECOND)
      await pass(30 * SECOND)
      expect([text(), second.subscribers()]).toEqual(['one', 1])
      await act(async () => second.set(['a', 'two']))

      expect(text()).toBe('two')
      expect([first.subscribers(), second.subscribers()]).toEqual([0, 1])
    })

    it('waits again if a view loses what it was denied for and has no rows yet', async () => {
      const view = testView()
      const boundary = createRef<Boundary>()
      const node = <Boundary ref={boundary}>{waiting(<Row view={view} />)}</Boundary>
      const { text } = await mount(node, { strict })
      await act(async () => view.enter('denied', new Error('forbidden')))
      view.enter('connecting')

      // Within the time for which the refusal is kept.
      await act(async () => boundary.current?.reset())
      expect(text()).toBe('waiting')
      expect(view.subscribers()).toBe(1)
      await act(async () => view.set(['a', 'one']))

      expect(text()).toBe('one')
      expect(view.subscribers()).toBe(1)
    })
  },
)

describe('several views', () => {
  it('of components beside each other are all followed at once', async () => {
    const views = [testView(), testView(), testView()]
    await mount(waiting(views.map((view, index) => <Row key={index} view={view} />)))

    expect(views.map((view) => view.subscribers())).toEqual([1, 1, 1])
  })

  it('of one component are followed at once with prefetchView', async () => {
    const [left, right] = [testView(), testView()]
    function Both() {
      prefetchView(left, right)
      const one = useSuspenseView(left, ({ rows }) => rows.get('a'))
      const two = useSuspenseView(right, ({ rows }) => rows.get('a'))
      return `${one} ${two}`
    }
    const { text, unmount } = await mount(waiting(<Both />))
    expect([left.subscribers(), right.subscribers()]).toEqual([1, 1])

    await act(async () => right.set(['a', 'two']))
    expect(text()).toBe('waiting')
    await act(async () => left.set(['a', 'one']))
    expect(text()).toBe('one two')
    await unmount()
    expect([left.subscribers(), right.subscribers(), vi.getTimerCount()]).toEqual([0, 0, 0])
    expect(errors).toEqual([])
  })

  it('that are prefetched and never shown are followed for 5 s after their rows', async () => {
    const view = testView()
    await act(async () => prefetchView(view, view))
    expect(view.subscribers()).toBe(1)
    view.set(['a', 'one'])
    await pass(4_999)
    expect(view.subscribers()).toBe(1)

    await pass(1)

    expect([view.subscribers(), vi.getTimerCount()]).toEqual([0, 0])
  })

  it('share one subscription until they are mounted', async () => {
    const view = testView()
    const { text } = await mount(
      waiting(
        <>
          <Row view={view} /> <Row view={view} />
        </>,
      ),
    )
    expect(view.subscribers()).toBe(1)
    await act(async () => view.set(['a', 'one']))
    expect([text(), view.subscribers()]).toEqual(['one one', 2])
  })
})

it('shows rows that are there in the first rendering', async () => {
  const view = testView([['a', 'one']])
  const texts: string[] = []
  function Fallback() {
    texts.push('waiting')
    return null
  }
  const { text } = await mount(
    <Suspense fallback={<Fallback />}>
      <Row view={view} />
    </Suspense>,
  )

  expect([text(), texts, attempts]).toEqual(['one', [], 1])
})
