import type { IncomingMessage, ServerResponse } from 'node:http'
import { createClient, ProtocolError } from 'rivulet'
import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createExchange as createFetchExchange } from '../../src/transport/fetch-exchange.ts'
import { createExchange as createUndiciExchange } from '../../src/transport/undici-exchange.ts'
import { serve } from '../support/serve.ts'

const apiKey = 'key-0123456789-secret'

/** The text of a stream, and its messages. `id` and `event` are undefined where a message has none. */
type Case = readonly [
  name: string,
  text: string,
  messages: readonly { readonly id?: string; readonly event?: string; readonly data: string }[],
]

// The cases of the public tests for event sources (the web platform's `eventsource/format-*`, LaunchDarkly's contract
// tests) and of the HTML standard's own examples, in our words.
const CASES: readonly Case[] = [
  ['a message of one line', 'data: hello\n\n', [{ data: 'hello' }]],
  ['a message of two lines', 'data: YHOO\ndata: +2\n\n', [{ data: 'YHOO\n+2' }]],
  ['a byte order mark before all', '\uFEFFdata:1\n\n', [{ data: '1' }]],
  ['a byte order mark before that', '\uFEFF\uFEFFdata:1\n\ndata:2\n\n', [{ data: '2' }]],
  ['CR', 'event:a\rdata:1\rid:9\r\rdata:2\r\r', [{ event: 'a', data: '1', id: '9' }, { data: '2' }]],
  [
    'CRLF',
    'event:a\r\ndata:1\r\nid:9\r\n\r\ndata:2\r\n\r\n',
    [{ event: 'a', data: '1', id: '9' }, { data: '2' }],
  ],
  [
    'LF, CRLF and CR in one',
    'data:1\ndata:2\r\ndata:3\rid:4\r\n\rdata:5\n\r\n',
    [{ data: '1\n2\n3', id: '4' }, { data: '5' }],
  ],
  ['comments', ': hi\ndata:1\n:\n:data:x\ndata:2\n\n:bye\n\n', [{ data: '1\n2' }]],
  ['no data at all', 'event:a\n\nid\n\n\n\ndata:1\n\n', [{ data: '1' }]],
  ['data without a value', 'data\n\ndata\ndata\n\ndata:\n\n', [{ data: '' }, { data: '\n' }, { data: '' }]],
  [
    'one leading space',
    'data: 1\n\ndata:  2\n\ndata:\t3\n\n',
    [{ data: '1' }, { data: ' 2' }, { data: '\t3' }],
  ],
  [
    'a colon within a value',
    'data:{"a":1}\nid: a:b\nevent::\n\n',
    [{ data: '{"a":1}', id: 'a:b', event: ':' }],
  ],
  ['unknown fields', 'datum:1\nData:2\n data:3\ndata :4\nhello\ndata:5\n\n', [{ data: '5' }]],
  ['an id for its own message only', 'id:1\ndata:a\n\ndata:b\n\n', [{ id: '1', data: 'a' }, { data: 'b' }]],
  [
    'an id without a value',
    'id:1\ndata:a\n\nid\ndata:b\n\n',
    [
      { id: '1', data: 'a' },
      { id: '', data: 'b' },
    ],
  ],
  ['an id with NUL', 'id:1\0\ndata:a\n\nid:2\nid:\0\ndata:b\n\n', [{ data: 'a' }, { id: '2', data: 'b' }]],
  ['NUL in data', 'data:\0\n\n', [{ data: '\0' }]],
  [
    'an event name for its own message only',
    'event: a\ndata:1\n\ndata:2\n\n',
    [{ event: 'a', data: '1' }, { data: '2' }],
  ],
  ['an empty event name', 'event:a\nevent:\ndata:1\n\nevent\ndata:2\n\n', [{ data: '1' }, { data: '2' }]],
  ['fields in any order', 'data:1\nid:2\nevent:a\ndata:3\n\n', [{ data: '1\n3', id: '2', event: 'a' }]],
  ['a retry within a message', 'retry: 5\ndata:1\nretry:x\nretry:1.5\n\n', [{ data: '1' }]],
  [
    'characters of two, three and four bytes',
    'event:ß\ndata:€🌊\nid:é\n\n',
    [{ event: 'ß', data: '€🌊', id: 'é' }],
  ],
  ['a Unicode line separator, which ends no line', 'data:a\u2028b\u0085c\n\n', [{ data: 'a\u2028b\u0085c' }]],
  ['a last message without its blank line', 'data:1\n\ndata:2\nid:3\n', [{ data: '1' }]],
  ['a last line without its end', 'data:1\n\ndata:2\n\ndata:3', [{ data: '1' }, { data: '2' }]],
]

/** The offsets at which the bytes of a case are split in two; 0 sends each byte alone. */
const cutsOf = (bytes: Uint8Array) => Array.from(bytes, (_byte, index) => index)

/** Sends the parts, each after the previous one was written and its reader has had a turn. */
async function send(response: ServerResponse, parts: readonly Uint8Array[]): Promise<void> {
  response.socket?.setNoDelay()
  for (const part of parts) {
    await new Promise((resolve) => response.write(part, resolve))
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

function eventStream(response: ServerResponse, type = 'text/event-stream'): ServerResponse {
  return response.writeHead(200, { 'content-type': type })
}

describe.each([
  { name: 'undici', createExchange: createUndiciExchange },
  { name: 'fetch', createExchange: createFetchExchange },
])('client.stream over $name', ({ createExchange }) => {
  const clientOf = (baseUrl: string) => createClient({ baseUrl, apiKey, exchange: createExchange() })

  /** The messages of one connection, each with only its own fields. */
  async function messagesOf(baseUrl: string, query: Readonly<Record<string, number>> = {}) {
    const messages = await lastValueFrom(clientOf(baseUrl).stream('/stream', { query }).pipe(toArray()))
    return messages.map(({ id, event, data }) => ({ id, event, data }))
  }

  /** The messages of the stream that the listener sends. */
  async function answered(listener: (request: IncomingMessage, response: ServerResponse) => void) {
    return messagesOf(await serve(listener))
  }

  it.each(CASES)('reads %s, wherever its bytes are split', async (_name, text, messages) => {
    const bytes = new TextEncoder().encode(text)
    const baseUrl = await serve((request, response) => {
      const at = Number(new URL(request.url ?? '', 'http://localhost').searchParams.get('at'))
      const parts =
        at === 0
          ? Array.from(bytes, (byte) => Uint8Array.of(byte))
          : [bytes.subarray(0, at), bytes.subarray(at)]
      void send(eventStream(response), parts)
    })

    const read = await Promise.all(cutsOf(bytes).map((at) => messagesOf(baseUrl, { at })))

    for (const one of read) expect(one).toEqual(messages)
  })

  it.each([
    'text/event-stream',
    'text/event-stream;charset=utf-8',
    'Text/Event-Stream ; charset=UTF-8',
    'text/event-stream;',
    'text/event-stream;x=y',
  ])('accepts the content type %s', async (type) => {
    await expect(
      answered((_request, response) => eventStream(response, type).end('data:€\n\n')),
    ).resolves.toEqual([{ data: '€' }])
  })

  it('decodes UTF-8 with any charset in the content type', async () => {
    const type = 'text/event-stream;charset=windows-1252'

    await expect(
      answered((_request, response) => eventStream(response, type).end('data:ok…\n\n')),
    ).resolves.toEqual([{ data: 'ok…' }])
  })

  it.each([
    'text/event-streams',
    'text/event',
    'text/x-bogus',
    'application/json',
    'text/plain, text/event-stream',
  ])('refuses the content type %s', async (type) => {
    const stream = answered((_request, response) => eventStream(response, type).end('data:1\n\n'))

    await expect(stream).rejects.toBeInstanceOf(ProtocolError)
    await expect(stream).rejects.toThrow(type)
  })

  it.each([205, 206, 210, 299])('refuses a %i, which is not an open stream', async (status) => {
    const stream = answered((_request, response) => {
      response
        .writeHead(status, { 'content-type': 'text/event-stream' })
        .end(status === 205 ? '' : 'data:1\n\n')
    })

    await expect(stream).rejects.toBeInstanceOf(ProtocolError)
    await expect(stream).rejects.toThrow(String(status))
  })

  it('ends with a 204, after which an event source does not reconnect', async () => {
    await expect(answered((_request, response) => response.writeHead(204).end())).resolves.toEqual([])
  })

  it('requests an event stream without caches', async () => {
    const received: unknown[] = []
    await answered((request, response) => {
      received.push(request.headers)
      eventStream(response).end()
    })

    expect(received).toMatchObject([{ accept: 'text/event-stream', 'cache-control': 'no-cache' }])
  })

  it.each([301, 302, 303, 307, 308])(
    'does not follow a %i, which would send the key to another server',
    async (status) => {
      const followed: unknown[] = []
      const elsewhere = await serve((request, response) => {
        followed.push(request.headers)
        eventStream(response).end('data:1\n\n')
      })
      const stream = answered((_request, response) =>
        response.writeHead(status, { location: elsewhere }).end(),
      )

      await expect(stream).rejects.toMatchObject({ name: 'ProtocolError', retryable: false })
      await expect(stream).rejects.not.toThrow(apiKey)
      expect(followed).toEqual([])
    },
  )
})
