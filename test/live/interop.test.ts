import { from, map } from 'rxjs'
import { describe, expect, it } from 'vitest'
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

  it('has an observable under the text too, where the platform has no symbol', () => {
    const view = connectTo('http://127.0.0.1:1', new TestPage()).view('groups')
    const seen: unknown[] = []
    const subscription = view['@@observable']().subscribe({ next: (value) => void seen.push(value) })
    subscription.unsubscribe()
    expect(seen).toEqual([view.getSnapshot()])
  })
})
