import type { LiveInspection, LiveStatus, ViewSnapshot } from 'rivulet/live'
import { firstValueFrom, from, map } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { TestPage } from './environment.ts'
import { connectTo, soon } from './pages.ts'
import { streamServer } from './stream-server.ts'

const sendRow = (n: number) =>
  streamServer({
    onStream: (stream) =>
      stream
        .open()
        .send('snapshot', { view: 'groups', first: true, rows: [['a', { n }]], position: '1' })
        .send('current', { view: 'groups' }),
  })

/** What `toSignal` of Angular takes, as its declaration has it, and does: it hands over an observer, and calls `unsubscribe`. */
interface Subscribable<T> {
  subscribe(observer: { next: (value: T) => void; error: (error: unknown) => void; complete: () => void }): {
    unsubscribe(): void
  }
}

function toSignal<T>(
  source: Subscribable<T>,
  onChange?: (value: T) => void,
): [() => T | undefined, () => void] {
  let last: T | undefined
  const fail = () => expect.unreachable()
  const next = (value: T) => {
    last = value
    onChange?.(value)
  }
  const subscription = source.subscribe({ next, error: fail, complete: fail })
  return [() => last, subscription.unsubscribe.bind(subscription)]
}

describe('a view', () => {
  it('is an observable for RxJS, which ends its subscription', async () => {
    const page = new TestPage()
    const server = await sendRow(1)
    const live = connectTo(server.url, page)
    const sizes: number[] = []
    const subscription = from(live.view('groups'))
      .pipe(map(({ rows }) => rows.size))
      .subscribe((size) => void sizes.push(size))
    await soon(page, () => sizes.length === 2)

    subscription.unsubscribe()
    page.advance(10_000)
    await soon(page, () => server.streams[0]?.isClosed === true)
    expect(sizes).toEqual([0, 1])
  })

  it('keeps the contract of Svelte stores: a value at once, then each change, until the returned function is called', async () => {
    const page = new TestPage()
    const server = await sendRow(2)
    const view = connectTo(server.url, page).view('groups')
    const values: unknown[] = []
    const end = view.subscribe((value) => void values.push(value))
    expect(values).toEqual([view.getSnapshot()])
    await soon(page, () => values.length === 2)

    end()
    end()
    server.streams[0]?.send('changes', { view: 'groups', rows: [['b', { n: 1 }]], position: '2' })
    await soon(page, () => view.getSnapshot().rows.size === 2)
    expect(values).toHaveLength(2)
  })

  it('takes an observer, and ends as observables do, as Angular and Solid expect it', async () => {
    const page = new TestPage()
    const server = await sendRow(3)
    const view = connectTo(server.url, page).view('groups')
    const seen: ViewSnapshot<{ n: number }>[] = []
    const [signal, end] = toSignal(view, (value) => void seen.push(value))
    expectTypeOf(signal).toEqualTypeOf<() => ViewSnapshot<{ n: number }> | undefined>()
    expect(signal()).toBe(view.getSnapshot())
    await soon(page, () => signal()?.rows.size === 1)

    end()
    server.streams[0]?.send('changes', { view: 'groups', rows: [['b', { n: 1 }]], position: '2' })
    await soon(page, () => view.getSnapshot().rows.size === 2)
    expect(seen).toHaveLength(2)
  })

  it('has an observable under the text too, where the platform has no symbol', () => {
    const view = connectTo('http://127.0.0.1:1', new TestPage()).view('groups')
    const seen: unknown[] = []
    const subscription = view['@@observable']().subscribe({ next: (value) => void seen.push(value) })
    subscription.unsubscribe()
    expect(seen).toEqual([view.getSnapshot()])
  })
})

describe('the status and the inspection of a connection', () => {
  it('are observables for RxJS, which emit at once, then each change, until their subscriptions end', async () => {
    const page = new TestPage()
    const server = await sendRow(4)
    const live = connectTo(server.url, page)
    const states: string[] = []
    const subscription = from(live.status)
      .pipe(map(({ state }) => state))
      .subscribe((state) => void states.push(state))
    expect(await firstValueFrom(from(live.inspect))).toMatchObject({ role: 'idle' })
    live.view('groups').subscribe(() => {})
    await soon(page, () => states.length === 2)

    subscription.unsubscribe()
    server.streams[0]?.cut()
    await soon(page, () => live.status.getSnapshot().state === 'stale')
    expect(states).toEqual(['connecting', 'live'])
  })

  it('compile where Angular and RxJS take a value that changes', () => {
    const { status, inspect } = connectTo('http://127.0.0.1:1', new TestPage())

    expectTypeOf(toSignal(status)[0]).toEqualTypeOf<() => LiveStatus | undefined>()
    expectTypeOf(toSignal(inspect)[0]).toEqualTypeOf<() => LiveInspection | undefined>()
  })
})
