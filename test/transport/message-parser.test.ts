import { createParser } from 'eventsource-parser'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MessageParser } from '../../src/transport/message-parser.ts'
import type { StreamMessage } from '../../src/transport/message-parser.ts'

interface Heard {
  readonly messages: StreamMessage[]
  readonly delays: number[]
  tooLong: number
}

/** What our parser makes of the chunks. */
function parsed(chunks: readonly string[], maxLength = Infinity): Heard {
  const heard: Heard = { messages: [], delays: [], tooLong: 0 }
  const parser = new MessageParser(
    {
      message: (message) => heard.messages.push(message),
      retry: (delay) => heard.delays.push(delay),
      tooLong: () => (heard.tooLong += 1),
    },
    maxLength,
  )
  for (const chunk of chunks) parser.feed(chunk)
  return heard
}

/** What another makes of the same. */
function reference(text: string): Pick<Heard, 'messages' | 'delays'> {
  const messages: StreamMessage[] = []
  const delays: number[] = []
  const parser = createParser({
    onEvent: ({ id, event, data }) => messages.push({ id, event: event === '' ? undefined : event, data }),
    onRetry: (delay) => delays.push(delay),
  })
  parser.feed(text)
  return { messages, delays }
}

describe('MessageParser', () => {
  it('agrees with another parser on any text, wherever it is cut', () => {
    const token = fc.constantFrom(
      'data',
      'id',
      'event',
      'retry',
      'other',
      ':',
      ':',
      ' ',
      '\n',
      '\n',
      '\n\n',
      '{"a":1}',
      '12',
      'é',
      '\0',
      'x',
    )
    const text = fc.array(token, { maxLength: 60 }).map((tokens) => tokens.join(''))
    fc.assert(
      fc.property(
        text,
        fc.array(fc.nat(), { maxLength: 10 }),
        fc.constantFrom('\n', '\r\n'),
        (lines, at, end) => {
          const whole = lines.replaceAll('\n', end)
          const borders = [0, ...at.map((cut) => cut % (whole.length + 1)), whole.length].toSorted(
            (a, b) => a - b,
          )
          const chunks = borders.slice(1).map((border, index) => whole.slice(borders[index], border))
          const { messages, delays } = parsed(chunks)
          expect({ messages, delays }).toEqual(reference(whole))
        },
      ),
      { numRuns: 2_000 },
    )
  })

  it('takes a lone carriage return for the end of a line', () => {
    expect(parsed(['data: a\rdata: b\r', '\rdata: c\r', '\n\r', '\n']).messages).toEqual([
      { id: undefined, event: undefined, data: 'a\nb' },
      { id: undefined, event: undefined, data: 'c' },
    ])
  })

  it('skips a byte order mark at the beginning and nowhere else', () => {
    expect(parsed(['', '\uFEFFdata: a\n\n', '\uFEFFdata: b\n\n']).messages.map(({ data }) => data)).toEqual([
      'a',
    ])
  })

  it('says once that a message is too long, and then no more', () => {
    const long = 'x'.repeat(100)
    expect(parsed([`data: ${long}`], 50)).toMatchObject({ tooLong: 1, messages: [] })
    expect(parsed([`data: ${long}`, long, '\n\ndata: a\n\n'], 150)).toMatchObject({
      tooLong: 1,
      messages: [],
    })
    expect(parsed([`data: ${long}\n`, `data: ${long}\n\n`, 'data: a\n\n'], 150)).toMatchObject({
      tooLong: 1,
      messages: [],
    })
  })

  it('holds the length of each message against the limit, not that of all', () => {
    const many = Array.from({ length: 50 }, (_, n) => [`data: ${'x'.repeat(30)}`, `${n}\n`, '\n']).flat()
    expect(parsed(many, 50)).toMatchObject({ tooLong: 0, messages: { length: 50 } })
  })

  it('tells nothing after it was stopped, not even what the chunk still holds', () => {
    const messages: string[] = []
    const parser = new MessageParser(
      {
        message({ data }) {
          messages.push(data)
          parser.stop()
        },
        retry: () => {},
        tooLong: () => {},
      },
      1_000,
    )
    parser.feed('data: a\n\ndata: b\n\n')
    parser.feed('data: c\n\n')
    expect(messages).toEqual(['a'])
  })
})
