import { view } from 'rivulet/gateway'
import { describe, expect, it } from 'vitest'
import { openStream } from './client.ts'
import { processed, served, setItem } from './fixture.ts'

describe('a view with params', () => {
  it('has the rows of an empty param alone, in a snapshot, in changes and on the server', async () => {
    const { url, token, gateway, store, append } = await served()
    await append(setItem('', 'x', '1'), setItem('', '', 'own'), setItem('a', 'x', '2'), setItem('a', '', '3'))
    await processed(store, 'items')
    const stream = await openStream(url, await token(), [{ view: 'items', params: { list: '' } }])
    await stream.until('current')
    const sent = stream.model.rows('items?list=')

    await append(setItem('a', 'y', '4'), setItem('', 'x', '5'))
    await stream.until('changes')

    expect(sent).toEqual({ '': { value: 'own', times: 1 }, '/x': { value: '1', times: 1 } })
    expect(stream.model.rows('items?list=')).toEqual({ ...sent, '/x': { value: '5', times: 2 } })
    const grant = { sub: 'server', views: ['items'], sources: ['*'] }
    const rendered = await gateway.snapshot(grant, [{ view: 'items', params: { list: '' } }])
    expect(Object.fromEntries(rendered['items?list=']?.rows ?? [])).toEqual(stream.model.rows('items?list='))
  })
})

describe('a view whose source is no text for some rows, against its type', () => {
  it('shows those only to grants of all sources, and goes on for the others', async () => {
    const rows = view({
      version: 1,
      types: ['monitor.event_stream'],
      key: ({ data }) => [data.event_id],
      reduce: () => ({ n: 1 }),
      source: ([id = '']) => (id.startsWith('none') ? JSON.parse('null') : '/v1/monitors/a'),
    })
    const { url, token, gateway, store, append } = await served({ views: { rows } })
    await append(setItem('none', '', '1'), setItem('a', '', '1'))
    await processed(store, 'rows')
    const grant = { sub: 'one', views: ['rows'], sources: ['/v1/monitors/a'] }
    const [some, all] = [await gateway.grant(grant), await token()].map((each) =>
      openStream(url, each, [{ view: 'rows' }]),
    )
    const [few, whole] = [await some, await all]

    await few?.until('current')
    await whole?.until('current')

    expect(Object.keys(few?.model.rows('rows') ?? {})).toHaveLength(1)
    expect(Object.keys(whole?.model.rows('rows') ?? {})).toHaveLength(2)
  })
})
