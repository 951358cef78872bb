import { expect, it, vi } from 'vitest'
import { TestPage } from './environment.ts'
import { connectTo, follow, soon, tokenOf } from './pages.ts'
import { streamServer } from './stream-server.ts'

vi.mock('../../src/live/tabs.ts', () => new Promise(() => {}))
vi.mock('../../src/live/requests.ts', () => {
  throw new Error('404')
})

it('tabs have connections of their own where the code of the tabs never comes', async () => {
  const page = new TestPage({ tabs: true })
  const server = await streamServer({
    onStream: (stream) =>
      stream
        .open()
        .send('snapshot', { view: 'groups', first: true, rows: [], position: '1' })
        .send('current', { view: 'groups' }),
  })
  const view = connectTo(server.url, page, { getToken: () => tokenOf('user_1') }).view('groups')
  follow(view)
  const began = page.now()
  await soon(page, () => view.status().state === 'live')
  expect(page.now() - began).toBeLessThan(6_000)
})

it('a search whose code does not come is a typed error', async () => {
  const live = connectTo('http://127.0.0.1:9', new TestPage())
  await expect(live.search({ search_queries: ['a'] })).rejects.toMatchObject({
    name: 'LiveError',
    reason: 'network',
  })
})
