import { describe, expect, it } from 'vitest'
import { AuthenticationError, NotFoundError } from '../../src/transport/errors.ts'
import type { ClientObserver, ObservedRequest } from '../../src/transport/observer.ts'
import { createTransport } from '../../src/transport/transport.ts'
import type { ApiRequest, MessageSink } from '../../src/transport/transport.ts'
import { json, serve } from './server.ts'

const get: ApiRequest = { method: 'GET', path: '/v1/x', query: { cursor: 'c' }, idempotent: true }

/** An observer that keeps what it is called with. */
class Notes implements ClientObserver {
  readonly requests: ObservedRequest[] = []
  readonly calls: unknown[][] = []

  request(request: ObservedRequest) {
    this.requests.push(request)
    return {
      headers: { traceparent: `trace-${this.requests.length}`, accept: 'of the observer' },
      responded: (status: number) => void this.calls.push(['responded', status]),
      ended: (...error: readonly unknown[]) => void this.calls.push(['ended', ...error.filter(Boolean)]),
    }
  }
}

/** A transport to a server whose n-th answer has the n-th status, and the headers of the requests. */
async function transportTo(...statuses: readonly number[]) {
  const headers: Record<string, unknown>[] = []
  const { origin } = await serve((request, response) => {
    headers.push(request.headers)
    json(response, statuses[headers.length - 1] ?? 200, {})
  })
  const transport = createTransport({
    baseUrl: `${origin}/prefix`,
    apiKey: 'key_of_the_test',
    backoff: { initialDelay: 0 },
  })
  return { transport, headers, origin }
}

/** Opens a stream, and resolves when it has ended. */
const streamed = (open: (sink: MessageSink) => void) =>
  new Promise<void>((resolve) =>
    open({ message() {}, retry() {}, end: () => resolve(), error: () => resolve() }),
  )

describe('an observer of requests', () => {
  it('is called for each attempt, with its headers sent', async () => {
    const { transport, headers, origin } = await transportTo(503, 200)
    const notes = new Notes()
    transport.observers.add(notes)
    await transport.request(get)

    const url = `${origin}/prefix/v1/x?cursor=c`
    const request = { method: 'GET', url, path: '/v1/x', isStream: false }
    expect(notes.requests).toEqual([
      { ...request, attempt: 1 },
      { ...request, attempt: 2 },
    ])
    expect(headers.map(({ traceparent }) => traceparent)).toEqual(['trace-1', 'trace-2'])
    // The client's own headers win.
    expect(headers.map(({ accept }) => accept)).toEqual(['application/json', 'application/json'])
    expect(notes.calls.map(([name, value]) => [name, typeof value === 'number' ? value : ''])).toEqual([
      ['responded', 503],
      ['ended', ''],
      ['responded', 200],
      ['ended', ''],
    ])
  })

  it('gets the error that ended a request', async () => {
    const { transport } = await transportTo(404)
    const notes = new Notes()
    transport.observers.add(notes)

    await expect(transport.request(get)).rejects.toBeInstanceOf(NotFoundError)
    expect(notes.calls).toEqual([
      ['responded', 404],
      ['ended', expect.any(NotFoundError)],
    ])
  })

  it('gets no error of a request that was cancelled', async () => {
    const { promise: isAsked, resolve: asked } = Promise.withResolvers<void>()
    const { origin } = await serve(() => asked())
    const transport = createTransport({ baseUrl: origin, apiKey: 'key_of_the_test' })
    const notes = new Notes()
    transport.observers.add(notes)
    const controller = new AbortController()
    const answer = transport.request(get, controller.signal)
    await isAsked
    controller.abort(new Error('enough'))

    await expect(answer).rejects.toThrow('enough')
    expect(notes.calls).toEqual([['ended']])
  })

  it('sees the beginning and the end of a stream', async () => {
    const { origin } = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: 1\n\n')
    })
    const transport = createTransport({ baseUrl: origin, apiKey: 'key_of_the_test' })
    const notes = new Notes()
    transport.observers.add(notes)
    await streamed((sink) => transport.stream(get, sink))

    expect(notes.requests).toMatchObject([{ isStream: true, attempt: 1 }])
    expect(notes.calls).toEqual([['responded', 200], ['ended']])
  })

  it('gets the error of a stream that could not be opened', async () => {
    const { transport } = await transportTo(401)
    const notes = new Notes()
    transport.observers.add(notes)
    await streamed((sink) => transport.stream(get, sink))

    expect(notes.calls).toEqual([
      ['responded', 401],
      ['ended', expect.any(AuthenticationError)],
    ])
  })

  it('is called no more once it was removed, and may be there twice', async () => {
    const { transport } = await transportTo()
    const notes = new Notes()
    const [remove] = [transport.observers.add(notes), transport.observers.add(notes)]
    await transport.request(get)
    remove()
    await transport.request(get)

    expect(notes.requests).toHaveLength(3)
  })

  it('does not affect requests when it throws', async () => {
    const { transport } = await transportTo()
    const fail = () => {
      throw new Error('of the observer')
    }
    transport.observers.add({ request: fail })
    transport.observers.add({ request: () => ({ responded: fail, ended: fail }) })

    await expect(transport.request(get)).resolves.toMatchObject({ status: 200 })
  })
})
