import { describe, expect, it } from 'vitest'
import { entriesOf } from '../../log/entries.ts'
import { change } from '../../operators/events.ts'
import { served } from '../fixture.ts'
import { ALL } from './log-server.ts'

/** A gateway, and a request to its log with a token for all of it. */
async function gatewayLog() {
  const { gateway, url, log, append } = await served({ views: {} })
  const authorization = `Bearer ${await gateway.grant(ALL)}`
  const get = (query = '', { headers, ...init }: RequestInit = {}) =>
    fetch(`${url}/log${query}`, { ...init, headers: { authorization, ...headers } })
  return { gateway, url, log, append, get }
}

describe('the log of a gateway by Durable Streams', () => {
  it('is at /log below its path', async () => {
    const { get, append, log } = await gatewayLog()
    await append(change('1'), change('2'))

    expect(await (await get()).json()).toEqual(await entriesOf(log))
  })

  it('needs a token', async () => {
    const { url } = await gatewayLog()

    expect((await fetch(`${url}/log`)).status).toBe(401)
  })

  it.each(['PUT', 'POST', 'DELETE'])('cannot be changed by %s', async (method) => {
    const { get } = await gatewayLog()

    const response = await get('', { method })

    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  it('can be read by pages of other origins that are allowed', async () => {
    const { get, append } = await gatewayLog()
    await append(change('1'))

    const { headers } = await get('', { headers: { origin: 'http://localhost:1234' } })

    expect(headers.get('access-control-allow-origin')).toBe('http://localhost:1234')
    expect(headers.get('access-control-expose-headers')).toMatch(/stream-next-offset.*stream-up-to-date/)
    expect(headers.get('vary')).toMatch(/Authorization.*Origin/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('ends when the gateway is closed, and is refused from then on', async () => {
    const { gateway, get, append } = await gatewayLog()
    await append(change('1'))
    const response = await get('?offset=-1&live=sse')
    const text = response.text()

    await gateway.close()

    expect(await text).not.toContain('undefined')
    expect((await get()).status).toBe(503)
  })

  it('ends when the log is closed', async () => {
    const { log, get } = await gatewayLog()
    const response = await get('?offset=now&live=sse')
    const text = response.text()

    await log.close()

    expect(await text).toContain('streamNextOffset')
  })
})
