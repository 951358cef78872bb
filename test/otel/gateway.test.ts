import { instrument } from 'rivulet/otel'
import { describe, expect, it } from 'vitest'
import { openStream } from '../gateway/client.ts'
import { served, setItem } from '../gateway/fixture.ts'
import { collecting } from './telemetry.ts'

describe('a gateway', () => {
  it('has its connections counted while they are open', async () => {
    const { url, token, gateway } = await served()
    const { meter, series } = collecting()
    instrument({ gateway, meter })
    const streams = [await openStream(url, await token(), [{ view: 'everything' }])]
    streams.push(await openStream(url, await token(), [{ view: 'everything' }]))

    expect(await series('rivulet.gateway.connections')).toEqual([{ attributes: {}, value: 2 }])
    await Promise.all(streams.map((stream) => stream.close()))
    await expect.poll(() => series('rivulet.gateway.connections')).toEqual([{ attributes: {}, value: 0 }])
  })

  it('has its requests measured and its refusals counted, without an id of anyone', async () => {
    const { url, gateway } = await served()
    const { meter, series, metrics } = collecting()
    instrument({ gateway, meter })
    const token = await gateway.grant({ sub: 'ada-the-subject', views: ['items'] })
    await (await openStream(url, token, [{ view: 'items', params: { list: 'a' } }])).until('denied')
    await fetch(`${url}/stream`, { method: 'POST' })
    await fetch(`${url}/stream`, { method: 'POST', headers: { origin: 'https://evil.example' } })
    await fetch(`${url}/${token}`, { method: 'PURGE' })

    const refused = await series('rivulet.gateway.refusals')
    expect(
      refused.map(({ attributes, value }) => [
        attributes['http.route'],
        attributes['rivulet.gateway.refusal.code'],
        value,
      ]),
    ).toEqual([
      ['stream', 'forbidden', 2],
      ['stream', 'unauthenticated', 1],
      ['other', 'invalid', 1],
    ])
    const durations = await series('rivulet.gateway.request.duration')
    expect(durations.map(({ attributes }) => attributes)).toEqual([
      { 'http.route': 'stream', 'http.request.method': 'POST', 'http.response.status_code': 200 },
      { 'http.route': 'stream', 'http.request.method': 'POST', 'http.response.status_code': 401 },
      { 'http.route': 'stream', 'http.request.method': 'POST', 'http.response.status_code': 403 },
      { 'http.route': 'other', 'http.request.method': '_OTHER', 'http.response.status_code': 404 },
    ])
    const shown = JSON.stringify(await metrics())
    expect(shown).not.toContain(token)
    expect(shown).not.toContain('ada-the-subject')
  })

  it('has counted what it encodes once, and what each client takes', async () => {
    const { url, token, gateway, append } = await served()
    const { meter, series } = collecting()
    using _ = instrument({ gateway, meter })
    const open = async () => openStream(url, await token(), [{ view: 'everything' }])
    const streams = [await open(), await open(), await open()]
    await Promise.all(streams.map((stream) => stream.until('current')))
    const before = (await series('rivulet.gateway.encoded'))[0]?.value ?? 0
    await append(setItem('a', 'x', '1'))
    await Promise.all(streams.map((stream) => stream.until('changes')))

    expect(await series('rivulet.gateway.encoded')).toEqual([{ attributes: {}, value: before + 1 }])
    const [sent] = await series('rivulet.gateway.sent')
    expect(sent?.value).toBeGreaterThanOrEqual(9)
    const [size] = await series('rivulet.gateway.sent.size')
    expect(size?.value).toBeGreaterThan(100)
  })

  it('answers as ever where its observers fail', async () => {
    const { url, token, gateway } = await served()
    const fail = () => {
      throw new Error('an observer')
    }
    const unobserve = gateway.observe({
      request: fail,
      refused: fail,
      connected: () => fail,
      encoded: fail,
      sent: fail,
    })
    const stream = await openStream(url, await token(), [{ view: 'everything' }, { view: 'none' }])
    await stream.until('current')
    await stream.close()
    unobserve()

    expect((await fetch(`${url}/stream`, { method: 'POST' })).status).toBe(401)
  })
})
