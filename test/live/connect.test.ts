import { describe, expect, it, onTestFinished } from 'vitest'
import type { ConnectOptions, Live, LiveView, ViewShape, ViewSnapshot } from 'rivulet/live'
import { connectIn } from '../../src/live/connect.ts'
import { TestPage, until } from './environment.ts'
import { streamServer } from './stream-server.ts'
import type { StreamServer } from './stream-server.ts'

type Shapes = { groups: ViewShape<{ n: number }>; group: ViewShape<{ n: number }, 'group'> }

function connectTo(
  server: StreamServer,
  page: TestPage,
  options: Partial<ConnectOptions> = {},
): Live<Shapes> {
  const live = connectIn<Shapes>({ url: server.url, getToken: () => 'token', ...options }, page)
  onTestFinished(() => live.close())
  return live
}

/** Follows a view, and keeps each snapshot. */
function follow<Row>(view: LiveView<Row>): { snapshots: ViewSnapshot<Row>[]; end: () => void } {
  const snapshots: ViewSnapshot<Row>[] = []
  return { snapshots, end: view.subscribe((snapshot) => void snapshots.push(snapshot)) }
}

/** Runs the timers of the page until it is so. */
const soon = (page: TestPage, condition: () => boolean) => until(condition, () => page.advance(1))

describe('a view', () => {
  it('has the rows of a snapshot, then their changes, and is live once they are current', async () => {
    const page = new TestPage()
    const server = await streamServer()
    const view = connectTo(server, page).view('groups')
    const { snapshots } = follow(view)
    page.advance(100)

    const stream = await server.stream(0)
    expect(stream.views).toEqual([{ view: 'groups' }])
    expect(stream.token).toBe('Bearer token')
    stream
      .open()
      .send('snapshot', { view: 'groups', first: true, rows: [['a', { n: 1 }]] })
      .send('snapshot', { view: 'groups', first: false, rows: [['b', { n: 1 }]], position: '1' })
      .send('current', { view: 'groups' })
    await soon(page, () => view.status().state === 'live')
    stream.send('changes', {
      view: 'groups',
      rows: [
        ['a', null],
        ['c', { n: 3 }],
      ],
      position: '2',
    })
    await soon(page, () => view.getSnapshot().rows.has('c'))

    expect([...view.getSnapshot().rows]).toEqual([
      ['b', { n: 1 }],
      ['c', { n: 3 }],
    ])
    expect(snapshots.map(({ status }) => status.state)).toEqual(['connecting', 'live', 'live'])
    expect(snapshots.map(({ ready }) => ready)).toEqual([false, true, true])
    expect(snapshots.at(-1)).toBe(view.getSnapshot())
  })
})
