import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ProtocolError } from '../../src/transport/errors.ts'
import type { Exchange, ResponseSink } from '../../src/transport/exchange.ts'
import { createTransport } from '../../src/transport/transport.ts'
import type { TransportSettings } from '../../src/transport/transport.ts'
import { Listener, exchangeOf } from './stream-listener.ts'

/** Also records ids without data and skipped messages. */
class FullListener extends Listener {
  id(id: string): void {
    this.calls.push({ id })
  }

  oversized(limit: number): void {
    this.calls.push({ oversized: limit })
  }
}

/** Everything that a stream of these chunks reports between `open` and `end`. */
async function reported(
  chunks: readonly Uint8Array[],
  settings: Partial<TransportSettings> = {},
  sink: Listener = new FullListener(),
): Promise<readonly unknown[]> {
  const transport = createTransport({
    baseUrl: 'http://localhost',
    apiKey: 'key',
    exchange: exchangeOf(chunks),
    ...settings,
  })
  transport.stream({ method: 'GET', path: '/v1/stream', idempotent: true }, sink)
  await sink.ended
  expect(sink.calls[0]).toBe('open')
  expect(sink.calls.at(-1)).toBe('end')
  return sink.calls.slice(1, -1)
}

const encode = (text: string) => new TextEncoder().encode(text)

/** The same bytes whole, in any two parts, and byte by byte. */
function* splits(bytes: Uint8Array): Generator<readonly Uint8Array[]> {
  yield [bytes]
  for (let at = 1; at < bytes.length; at++) yield [bytes.slice(0, at), bytes.slice(at)]
  yield Array.from(bytes, (byte) => Uint8Array.of(byte))
}

describe('the format of the HTML standard, over all splits', () => {
  // The cases of the web platform tests (eventsource/format-*), in our own words.
  it.each<[string, string, readonly unknown[]]>([
    ['a byte order mark at the beginning', '\uFEFFdata:1\n\ndata:2\n\n', ['1', '2']],
    ['a second byte order mark as part of a name', '\uFEFF\uFEFFdata:1\n\ndata:2\n\n', ['2']],
    ['a byte order mark later on as part of a name', 'data:1\n\n\uFEFFdata:2\n\ndata:3\n\n', ['1', '3']],
    ['comments of any length', `data:1\n:${'x'.repeat(99)}\n:\ndata:2\n:data:3\n\n`, ['1\n2']],
    ['carriage returns', 'data:1\rdata:2\r\rdata:3\r\r', ['1\n2', '3']],
    ['carriage returns with newlines', 'data:1\r\ndata:2\r\n\r\ndata:3\r\n\r\n', ['1\n2', '3']],
    ['all line ends together', 'data:1\ndata:2\r\ndata:3\r\r\ndata:4\n\r\n', ['1\n2\n3', '4']],
    ['an event before the end without its blank line', 'data:1\n\ndata:2\n', ['1']],
    ['an event before the end without its line end', 'data:1\n\ndata:2', ['1']],
    ['data without a value', 'data:\n\ndata\ndata\n\ndata:test\n\n', ['', '\n', 'test']],
    [
      'one space before a value, not two',
      'data:\ttest\rdata: \ndata:test\n\ndata:  a\n\n',
      ['\ttest\n\ntest', ' a'],
    ],
    ['names that only look alike', 'data:1\nDATA:2\n data:3\ndatas:4\ndata :5\n\n', ['1']],
    ['lines of unknown fields', 'data:test\n data\nfoobar:xxx\njustsometext\n:thisisacomment\n\n', ['test']],
    ['a retry', 'retry:3000\ndata:x\n\n', [3_000, 'x']],
    ['a retry with zeroes before it', 'retry:0003\ndata:x\n\n', [3, 'x']],
    [
      'a retry that is not a number',
      'retry:3000\nretry:1000x\nretry:\nretry: -1\nretry:1e3\ndata:x\n\n',
      [3_000, 'x'],
    ],
    ['a null character in data', 'data:\0\n\n\ndata:\0\0\n\n', ['\0', '\0\0']],
    ['more than one byte for a character', 'data:ok…\n\ndata:🌊\n\n', ['ok…', '🌊']],
    ['a blank line without an event', '\n\n\nevent:x\n\n\r\ndata:1\n\n', ['1']],
    ['an id without data', 'id:7\n\ndata:1\n\n', [{ id: '7' }, '1']],
    [
      'an id without data between others',
      'id:1\ndata:a\n\nid:2\n\nid:3\n\nid:4\ndata:b\n\n',
      ['a', { id: '2' }, { id: '3' }, 'b'],
    ],
    ['an id without data at the end', 'id:1\ndata:a\n\nid: 2\nevent:x\n\n', ['a', { id: '2' }]],
    ['an id without a value', 'id\n\nid:\n\n', [{ id: '' }, { id: '' }]],
    ['an id with a null character', 'id:1\nid:2\0\n\nid:\0\n\ndata:1\n\n', [{ id: '1' }, '1']],
  ])('%s', async (_case, text, expected) => {
    for (const chunks of splits(encode(text))) expect(await reported(chunks)).toEqual(expected)
  })

  it('takes the last id and the last name of a block, and an empty name for none', async () => {
    const text = 'event:a\nid:1\nevent:b\nid:2\ndata:x\n\nevent:c\nevent:\ndata:y\n\n'
    for (const chunks of splits(encode(text))) {
      const sink = new FullListener()
      await reported(chunks, {}, sink)
      expect(sink.messages).toEqual([
        { id: '2', event: 'b', data: 'x' },
        { id: undefined, event: undefined, data: 'y' },
      ])
    }
  })

  it('decodes malformed UTF-8 as if it were in one chunk', async () => {
    const bytes = Uint8Array.of(
      ...encode('data:a'),
      0xe2,
      0x82,
      0x0a,
      0x0a,
      ...encode('data:b'),
      0xff,
      0x0a,
      0x0a,
    )
    for (const chunks of splits(bytes)) expect(await reported(chunks)).toEqual(['a\uFFFD', 'b\uFFFD'])
  })
})

it('keeps concurrent streams of one transport apart', async () => {
  const text =
    '\uFEFFid:1\ndata:a🌊\n\n\uFEFFdata:no\n\nretry:5\nid:2\n\ndata:b\ndata:c\r\n\r\ndata:d\n\ndata:half'
  const bytes = encode(text)
  const all = fc.array(fc.array(fc.nat(bytes.length), { maxLength: 6 }), { minLength: 2, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(all, fc.infiniteStream(fc.nat()), async (cuts, order) => {
      const opened: ResponseSink[] = []
      const exchange: Exchange = (_request, sink) => {
        opened.push(sink)
        return { pause() {}, resume() {}, abort() {} }
      }
      const transport = createTransport({ baseUrl: 'http://localhost', apiKey: 'key', exchange })
      const streams = cuts.map((at) => {
        const sink = new FullListener()
        transport.stream({ method: 'GET', path: '/v1/stream', idempotent: true }, sink)
        const borders = [0, ...at, bytes.length].toSorted((a, b) => a - b)
        return { sink, chunks: borders.slice(1).map((border, n) => bytes.slice(borders[n], border)) }
      })
      for (const sink of opened) sink.head(200, () => 'text/event-stream')
      for (;;) {
        const open = streams.flatMap(({ chunks }, n) => (chunks.length > 0 ? [n] : []))
        const next = open[(order.next().value ?? 0) % open.length]
        if (next === undefined) break
        opened[next]?.chunk(streams[next]?.chunks.shift() ?? new Uint8Array())
      }
      for (const { sink } of streams) expect(sink.calls).toEqual(['open', 'a🌊', 5, { id: '2' }, 'b\nc', 'd'])
    }),
    // The first stream is split within a character that follows a blank line.
    { numRuns: 300, examples: [[[[21], [32]], fc.stream([1, 0, 1][Symbol.iterator]())]] },
  )
})

describe('an event that is too long', () => {
  const skipped = { oversized: 50 }

  it.each<[string, string]>([
    ['of one line', `data:${'x'.repeat(51)}`],
    ['by far, of one line', `data: ${'x'.repeat(200)}`],
    ['of many lines', `${`data:${'x'.repeat(20)}\n`.repeat(3)}id:9\nevent:y`],
    ['with carriage returns in it', `data:${'x'.repeat(60)}\r\ndata:y\rdata:z\n\uFEFFdata:0`],
    ['with a line of an unknown field', `data:${'x'.repeat(60)}\n${'what'.repeat(30)}`],
  ])(
    '%s is skipped, and no other, wherever the bytes are split and with any line end',
    async (_how, text) => {
      for (const end of ['\n', '\r\n', '\r', '\r\n\n', '\n\r\n']) {
        const blank = end.replaceAll('\r\n', '\n').length > 1 ? end : end + end
        const whole = `id:1\ndata:a${blank}id:2\n${text}${blank}id:3\ndata:b${blank}data:c${blank}`
        for (const chunks of splits(encode(whole))) {
          const sink = new FullListener()
          expect(await reported(chunks, { maxEventLength: 50 }, sink)).toEqual(['a', skipped, 'b', 'c'])
          expect(sink.messages.map(({ id }) => id)).toEqual(['1', '3', undefined])
        }
      }
    },
  )

  it('has more characters of data than the limit, not as many', async () => {
    const longest = `${'x'.repeat(24)}\n${'y'.repeat(25)}`
    const text = `data: ${longest.replace('\n', '\ndata: ')}\n\ndata: ${'z'.repeat(50)}\n\n`
    for (const chunks of splits(encode(text))) {
      expect(await reported(chunks, { maxEventLength: 50 })).toEqual([longest, 'z'.repeat(50)])
    }
  })

  it('does not remove U+FEFF from a later event', async () => {
    const text = `data:${'x'.repeat(60)}\n\n\uFEFFdata:1\n\ndata:2\n\n`
    for (const chunks of splits(encode(text))) {
      expect(await reported(chunks, { maxEventLength: 50 })).toEqual([skipped, '2'])
    }
  })

  it('is not assembled from many short events or comments', async () => {
    const text = `${': alive\n'.repeat(50)}\n${`data:${'x'.repeat(30)}\n\n`.repeat(20)}${':\n\n'.repeat(99)}`
    expect(await reported([encode(text)], { maxEventLength: 50 })).toEqual(Array(20).fill('x'.repeat(30)))
  })

  it('is skipped once among any others, in any chunks', async () => {
    const length = fc.oneof(fc.nat(45), fc.integer({ min: 51, max: 300 }))
    const event = fc.record({ lines: fc.array(length, { minLength: 1, maxLength: 4 }), named: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        async (events, at, eol) => {
          const texts = events.map(({ lines }) => lines.map((size) => 'é'.repeat(size)).join('\n'))
          const blocks = events.map(({ named }, n) => {
            const data = texts[n]?.split('\n').map((line) => `data:${line}${eol}`) ?? []
            return `${named ? `id:${n}${eol}` : ''}${data.join('')}${eol}`
          })
          const bytes = encode(blocks.join(''))
          const borders = [0, ...at.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted(
            (a, b) => a - b,
          )
          const chunks = borders.slice(1).map((border, n) => bytes.slice(borders[n], border))

          expect(await reported(chunks, { maxEventLength: 50 })).toEqual(
            texts.map((data) => (data.length > 50 ? skipped : data)),
          )
        },
      ),
      { numRuns: 500 },
    )
  })

  it('ends a stream whose sink has no oversized', async () => {
    const sink = new Listener()
    const text = `data:1\n\ndata:${'x'.repeat(60)}\n\ndata:2\n\n`
    const exchange = exchangeOf([encode(text)])
    const transport = createTransport({
      baseUrl: 'http://localhost',
      apiKey: 'key',
      exchange,
      maxEventLength: 50,
    })

    transport.stream({ method: 'GET', path: '/v1/stream', idempotent: true }, sink)
    await sink.ended

    expect(sink.calls).toEqual(['open', '1', 'error'])
    expect(sink.failure).toBeInstanceOf(ProtocolError)
  })
})
