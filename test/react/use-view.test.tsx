// @vitest-environment jsdom
import { act, memo, useState } from 'react'
import type { LiveStatus, LiveView, ViewSnapshot } from 'rivulet/live'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { useStatus, useView } from 'rivulet/react'
import { Boundary } from './boundary.ts'
import { consoleErrors, mount } from './mount.ts'
import { testView } from './store.ts'

function Keys({ view }: { view: LiveView<string> }) {
  const { rows, status } = useView(view)
  return `${status.state}: ${[...rows.values()].join()}`
}

describe.each([{ strict: false }, { strict: true }])('useView, strict mode: $strict', ({ strict }) => {
  it('shows the rows and the status, and each change', async () => {
    const view = testView()
    const { text } = await mount(<Keys view={view} />, { strict })
    expect(text()).toBe('connecting: ')

    await act(async () => view.set(['a', 'one']))
    expect(text()).toBe('live: one')
    await act(async () => view.enter('stale'))
    expect(text()).toBe('stale: one')
  })

  it('leaves no subscription after an unmount', async () => {
    const view = testView()
    const { unmount } = await mount(<Keys view={view} />, { strict })
    expect(view.subscribers()).toBe(1)

    await unmount()
    expect(view.subscribers()).toBe(0)
  })

  it('follows another view when it is given one, and no longer the first', async () => {
    const first = testView([['a', 'one']])
    const second = testView([['b', 'two']])
    const { text, render } = await mount(<Keys view={first} />, { strict })

    await render(<Keys view={second} />)

    expect(text()).toBe('live: two')
    expect([first.subscribers(), second.subscribers()]).toEqual([0, 1])
  })

  it('ends with the last of params that change quickly, subscribed to it alone', async () => {
    const views = Array.from({ length: 50 }, (_, index) => testView([['a', `${index}`]]))
    let go: (index: number) => void = () => {}
    function Page() {
      const [index, setIndex] = useState(0)
      go = setIndex
      const view = views[index]
      return view === undefined ? null : <Keys view={view} />
    }
    const { text } = await mount(<Page />, { strict })

    for (const index of views.keys()) await act(async () => go(index))

    expect(text()).toBe('live: 49')
    expect(views.map((view) => view.subscribers())).toEqual([...Array<number>(49).fill(0), 1])
  })

  it('subscribes once with an inline selector that is another function in each rendering', async () => {
    const view = testView([['a', 'one']])
    let renderings = 0
    function Row({ name }: { name: string }) {
      renderings++
      return useView(view, ({ rows }) => `${name} ${rows.get(name)}`)
    }
    const { text, render } = await mount(<Row name="a" />, { strict })
    const subscriptions = view.subscriptions()
    await act(async () => view.set(['b', 'two']))
    await render(<Row name="b" />)

    expect(text()).toBe('b two')
    expect(view.subscriptions()).toBe(subscriptions)
    // Two each for the mount and the second render in strict mode; none for the row that was not selected.
    expect(renderings).toBe(strict ? 4 : 2)
  })
})

describe('the selector of useView', () => {
  it('renders again only when its result changes: one of 10,000 rows renders one component', async () => {
    const rows = Array.from({ length: 10_000 }, (_, index): [string, string] => [`${index}`, `row ${index}`])
    const view = testView(rows)
    const rendered: string[] = []
    const Row = memo(function Row({ name }: { name: string }) {
      rendered.push(name)
      return useView(view, (snapshot) => snapshot.rows.get(name))
    })
    const { text } = await mount(rows.map(([name]) => <Row key={name} name={name} />))
    expect(rendered).toHaveLength(10_000)
    rendered.length = 0

    await act(async () => view.set(['4711', 'changed']))

    expect(rendered).toEqual(['4711'])
    expect(text()).toContain('row 4710changedrow 4712')
  })

  it('keeps the same array while it has the same rows, although the function makes a new one', async () => {
    const view = testView([
      ['a', 'one'],
      ['b', 'two'],
    ])
    const seen: unknown[] = []
    function Ones({ count }: { count: number }) {
      seen.push(useView(view, ({ rows }) => [...rows.values()].filter((row) => row === 'one')))
      return count
    }
    const { render } = await mount(<Ones count={1} />)
    await act(async () => view.set(['b', 'three']))
    await render(<Ones count={2} />)

    expect(seen).toHaveLength(2)
    expect(seen[1]).toBe(seen[0])
    await act(async () => view.set(['b', 'one']))
    expect(seen[2]).toEqual(['one', 'one'])
  })

  it('is compared as the caller says', async () => {
    const view = testView([['a', 'one']])
    let renderings = 0
    function First() {
      renderings++
      return useView(
        view,
        ({ rows }) => rows.get('a'),
        (a, b) => a?.toLowerCase() === b?.toLowerCase(),
      )
    }
    const { text } = await mount(<First />)
    await act(async () => view.set(['a', 'ONE']))
    expect([text(), renderings]).toEqual(['one', 1])
    await act(async () => view.set(['a', 'two']))
    expect([text(), renderings]).toEqual(['two', 2])
  })

  it('may throw for rows whose component the same change removes', async () => {
    const errors = consoleErrors()
    const view = testView([['a', 'one']])
    function Child() {
      return useView(view, ({ rows }) => {
        const row = rows.get('a')
        if (row === undefined || row === 'gone') throw new Error('no row')
        return row
      })
    }
    function Parent() {
      return useView(view, ({ rows }) => rows.get('a') === 'gone') ? 'nothing' : <Child />
    }
    const { text } = await mount(
      <Boundary>
        <Parent />
      </Boundary>,
    )

    await act(async () => view.set(['a', 'gone']))

    expect(text()).toBe('nothing')
    expect(errors).toEqual([])
  })

  it('throws its error to the error boundary, and leaves no subscription', async () => {
    consoleErrors()
    const view = testView([['a', 'one']])
    function Strict() {
      return useView(view, ({ rows }) => {
        if (rows.get('a') !== 'one') throw new Error(`not one: ${rows.get('a')}`)
        return 'fine'
      })
    }
    const { text } = await mount(
      <Boundary>
        <Strict />
      </Boundary>,
    )
    expect(text()).toBe('fine')

    await act(async () => view.set(['a', 'two']))

    expect(text()).toBe('not one: two')
    expect(view.subscribers()).toBe(0)
  })

  it('reads its own view after a change of the view, with the same function', async () => {
    const size = ({ rows }: ViewSnapshot<string>) => rows.size
    const views = [testView([['a', 'one']]), testView()]
    const Size = ({ view }: { view: LiveView<string> }) => useView(view, size)
    const { text, render } = await mount(<Size view={views[0] ?? testView()} />)
    expect(text()).toBe('1')
    await render(<Size view={views[1] ?? testView()} />)
    expect(text()).toBe('0')
  })

  it('has the type of its result', () => {
    expectTypeOf(useView<number>).returns.toEqualTypeOf<ViewSnapshot<number>>()
    const useText = (view: LiveView<number>) => useView(view, ({ rows }) => String(rows.get('a')))
    expectTypeOf(useText).returns.toEqualTypeOf<string>()
  })
})

describe('useStatus', () => {
  it('renders for a change of the status alone', async () => {
    const view = testView()
    const seen: string[] = []
    function Status() {
      const { state } = useStatus(view)
      seen.push(state)
      return state
    }
    await mount(<Status />)
    await act(async () => view.enter('live'))
    const { length } = seen
    await act(async () => view.enter('offline'))

    expect(seen.slice(length)).toEqual(['offline'])
    expect(seen).toEqual(['connecting', 'live', 'offline'])
  })

  it('shows the status of a whole connection', async () => {
    const view = testView()
    const live = {
      status: {
        subscribe: (listener: (status: LiveStatus) => void) =>
          view.subscribe(({ status }) => listener(status)),
        getSnapshot: view.status,
      },
    }
    const Status = () => useStatus(live).state
    const { text, unmount } = await mount(<Status />)
    await act(async () => view.enter('denied'))

    expect(text()).toBe('denied')
    await unmount()
    expect(view.subscribers()).toBe(0)
  })
})
