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
    expect(Object.fromEntries(rendered['items?list=']?.rows ?? [])).toEqual(
      stream.model.rows('items?list='),
    )
  })
})
