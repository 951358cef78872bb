import { createParser } from 'eventsource-parser'
import type { EventSourceParser } from 'eventsource-parser'

/** One message of an event stream, its fields as the server wrote them. */
export interface StreamMessage {
  /** The `id:` field, where this message has one; it does not stand for the messages after it. */
  readonly id?: string | undefined
  /** The `event:` field. */
  readonly event?: string | undefined
  /** The `data:` lines, joined by newlines. */
  readonly data: string
}

/** Takes what a {@link MessageReader} reads. */
export interface MessageListener {
  message(message: StreamMessage): void
  /** The server's `retry:` field: how long to wait before connecting again, in ms. */
  retry(delay: number): void
  /** An `id:` came without data. */
  id(id: string): void
  /** A message longer than the limit was met. Where it returns true, the stream goes on after that message. */
  tooLong(): boolean
  /** A message longer than the limit has ended. */
  skipped(): void
}

/** Where the end of a skipped message is looked for: within a line, at a line's start, or there after a carriage return. */
type SkipState = 'in-line' | 'line-start' | 'after-return'

/** `data: `, which the parser counts for a line that is not complete, and which is not part of the data. */
const FIELD_PREFIX = 6

const NEWLINE = 0x0a

const STREAM: TextDecodeOptions = { stream: true }

/** Unused readers that are kept for the next chunks. */
const MAX_UNUSED = 16

/**
 * The readers of many event streams. A stream needs one only while it is within a message: a decoder and a parser for each
 * of thousands of streams, most of them silent, would take most of the memory that such a stream takes.
 */
export class MessageReaders {
  readonly #maxLength: number
  readonly #unused: MessageReader[] = []

  /** @param maxLength Characters of one message's data, at the most. */
  constructor(maxLength: number) {
    this.#maxLength = maxLength
  }

  /** A reader for this stream, at its beginning or between two messages. */
  take(listener: MessageListener, atBeginning: boolean): MessageReader {
    const reader = this.#unused.pop() ?? new MessageReader(this.#maxLength)
    reader.begin(listener, atBeginning)
    return reader
  }

  /** Takes back a reader that is between two messages. */
  giveBack(reader: MessageReader): void {
    if (this.#unused.length < MAX_UNUSED) this.#unused.push(reader)
  }
}

/** What a reader without a stream reports to. */
const NO_LISTENER: MessageListener = { message() {}, retry() {}, id() {}, tooLong: () => false, skipped() {} }

/** Reads the messages of one event stream (HTML standard, "event stream format") from its bytes, cut anywhere. */
export class MessageReader {
  /** Whether the stream is between two messages, so that another stream's chunk can be read. */
  betweenMessages = false
  #listener: MessageListener = NO_LISTENER
  readonly #maxLength: number
  // The parser skips the byte order mark.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  readonly #parser: EventSourceParser
  /** No fewer characters than the parser holds. */
  #held = 0
  /** A message ended within the text that is being parsed. */
  #dispatched = false
  /** An id whose message may still follow: the parser reports it first. */
  #id: string | undefined
  #overflowed = false
  #foundInvalid = false
  /** Whether the last text ended with the end of a line. */
  #endedLine = true
  #skipping: SkipState | undefined
  #stopped = false

  /** @param maxLength Characters of one message's data, at the most. */
  constructor(maxLength: number) {
    this.#maxLength = maxLength
    this.#parser = createParser({
      maxBufferSize: maxLength + FIELD_PREFIX,
      onEvent: (message) => this.#onEvent(message),
      onId: (id) => this.#onId(id),
      onRetry: (delay) => {
        if (!this.#stopped) this.#listener.retry(delay)
      },
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') this.#overflowed = true
        else this.#foundInvalid = true
      },
    })
    // It may be taken for the midst of a stream, where a byte order mark is none.
    this.#parser.feed('\n')
  }

  /** Reads on for this stream. */
  begin(listener: MessageListener, atBeginning: boolean): void {
    this.#listener = listener
    this.#held = 0
    // Then it skips a byte order mark again.
    if (atBeginning) this.#parser.reset()
  }

  /** Nothing more is reported, not even what the present chunk still holds. */
  stop(): void {
    this.#stopped = true
  }

  read(bytes: Uint8Array): void {
    const text = this.#decoder.decode(bytes, STREAM)
    if (this.#skipping === undefined && this.#held + text.length <= this.#maxLength) this.#feed(text)
    else this.#feedLines(text)
    this.#flushId()
    this.#endedLine = text === '' ? this.#endedLine : text.endsWith('\n') || text.endsWith('\r')
    // By the last byte too: the decoder may hold the beginning of a character.
    this.betweenMessages =
      !this.#stopped &&
      this.#skipping === undefined &&
      bytes.at(-1) === NEWLINE &&
      (text.endsWith('\n\n') || text.endsWith('\n\r\n'))
    if (this.betweenMessages) this.#listener = NO_LISTENER
  }

  /** Whether the stream ended within a message. Nothing more can be read. */
  endsWithinMessage(): boolean {
    if (this.#skipping !== undefined) return true
    let isAlone = false
    this.#listener = {
      ...NO_LISTENER,
      message: ({ id, event, data }) => (isAlone = id === undefined && event === undefined && data === ''),
    }
    this.#foundInvalid = false
    // A message is put behind what came. It has more than its own field where another one had begun.
    const rest = this.#decoder.decode()
    this.#feed(rest === '' && this.#endedLine ? '' : `${rest}\n`)
    this.#feed('data:\n\n')
    return !isAlone || this.#foundInvalid
  }

  #feed(text: string): void {
    this.#dispatched = false
    this.#parser.feed(text)
    this.#held = this.#dispatched ? text.length : this.#held + text.length
  }

  /** Line by line: a parser that overflows drops all that it was given in the same call. */
  #feedLines(text: string): void {
    let from = 0
    while (from < text.length && !this.#stopped) {
      if (this.#skipping !== undefined) {
        from = this.#skip(text, from, this.#skipping)
        continue
      }
      const end = lineEnd(text, from)
      const line = text.slice(from, end)
      this.#feed(line)
      from = end
      if (this.#overflowed) this.#beginSkip(line)
    }
  }

  #beginSkip(line: string): void {
    this.#overflowed = false
    this.#id = undefined
    this.#skipping = line.endsWith('\n') ? 'line-start' : line.endsWith('\r') ? 'after-return' : 'in-line'
    if (!this.#listener.tooLong()) this.stop()
  }

  /** Skips one line, or finds the blank one, which the parser then begins with. Returns where to go on. */
  #skip(text: string, from: number, state: SkipState): number {
    const first = text[from]
    if (state === 'after-return' && first === '\n') {
      this.#skipping = 'line-start'
      return from + 1
    }
    if (state !== 'in-line' && (first === '\n' || first === '\r')) {
      this.#skipping = undefined
      this.#held = 0
      this.#parser.reset()
      this.#listener.skipped()
      return from
    }
    const end = lineEnd(text, from)
    const last = text[end - 1]
    this.#skipping = last === '\n' ? 'line-start' : last === '\r' ? 'after-return' : 'in-line'
    return end
  }

  #onId(id: string): void {
    this.#flushId()
    this.#id = id
  }

  #onEvent(message: StreamMessage): void {
    this.#dispatched = true
    if (message.id === undefined) this.#flushId()
    this.#id = undefined
    if (this.#stopped) return
    if (message.data.length <= this.#maxLength) this.#listener.message(message)
    else if (this.#listener.tooLong()) this.#listener.skipped()
    else this.stop()
  }

  /** Reports an id that was not followed by its message. */
  #flushId(): void {
    const id = this.#id
    this.#id = undefined
    if (id !== undefined && !this.#stopped) this.#listener.id(id)
  }
}

/** Where the line that begins at `from` ends, behind its line end; the text's end where it has none. */
function lineEnd(text: string, from: number): number {
  const end = /\r\n?|\n/g
  end.lastIndex = from
  return end.exec(text) === null ? text.length : end.lastIndex
}
