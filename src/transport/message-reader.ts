import { createParser } from 'eventsource-parser'
import type { EventSourceParser } from 'eventsource-parser'

/** One message of an event stream, its fields as the server wrote them. */
export interface StreamMessage {
  /** The `id:` field of this message; undefined if it has none, even after a message with one. */
  readonly id?: string | undefined
  /** The `event:` field. */
  readonly event?: string | undefined
  /** The `data:` lines, joined by newlines. */
  readonly data: string
}

/** Receives the messages of a {@link MessageReader}. */
export interface MessageListener {
  message(message: StreamMessage): void
  /** The server's `retry:` field: how long to wait before connecting again, in ms. */
  retry(delay: number): void
  /** An `id:` field arrived without data. */
  id(id: string): void
  /** A message exceeds the limit. Returns whether to continue after that message. */
  tooLong(): boolean
  /** A message longer than the limit has ended. */
  skipped(): void
}

/** The state of a skip: within a line, at a line's start, or at a line's start after a carriage return. */
type SkipState = 'in-line' | 'line-start' | 'after-return'

/** The length of `data: `, which the parser counts for an incomplete line although it is not data. */
const FIELD_PREFIX = 6

const NEWLINE = 0x0a

const STREAM: TextDecodeOptions = { stream: true }

/** Unused readers that are kept for reuse. */
const MAX_UNUSED = 16

/**
 * A pool of readers for many event streams. A stream holds one only while it is within a message: a decoder and a parser
 * for each of thousands of idle streams would be most of the memory of such a stream.
 */
export class MessageReaders {
  readonly #maxLength: number
  readonly #unused: MessageReader[] = []

  /** @param maxLength Maximum length of a message's data, in characters. */
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

/** The listener of a reader in the pool. */
const NO_LISTENER: MessageListener = { message() {}, retry() {}, id() {}, tooLong: () => false, skipped() {} }

/** Reads the messages of one event stream (HTML standard, "event stream format") from its bytes, split anywhere. */
export class MessageReader {
  /** Whether the stream is between two messages, so that the reader can be used for another stream. */
  betweenMessages = false
  #listener: MessageListener = NO_LISTENER
  readonly #maxLength: number
  // The parser skips the byte order mark.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  readonly #parser: EventSourceParser
  /** An upper bound of the characters that the parser has buffered. */
  #buffered = 0
  /** Whether a message ended within the text that is being parsed. */
  #dispatched = false
  /** An id whose message may still follow. The parser reports the id first. */
  #id: string | undefined
  #overflowed = false
  #foundInvalid = false
  /** Whether the last text ended with the end of a line. */
  #endedLine = true
  #skipping: SkipState | undefined
  #stopped = false

  /** @param maxLength Maximum length of a message's data, in characters. */
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
    // The reader may be used in the middle of a stream, where U+FEFF is not a byte order mark.
    this.#parser.feed('\n')
  }

  /** Starts to read for this stream. */
  begin(listener: MessageListener, atBeginning: boolean): void {
    this.#listener = listener
    this.#buffered = 0
    // A reset parser skips a byte order mark again.
    if (atBeginning) this.#parser.reset()
  }

  /** Reports nothing more, not even the rest of the current chunk. */
  stop(): void {
    this.#stopped = true
  }

  read(bytes: Uint8Array): void {
    const text = this.#decoder.decode(bytes, STREAM)
    if (this.#skipping === undefined && this.#buffered + text.length <= this.#maxLength) this.#feed(text)
    else this.#feedLines(text)
    this.#flushId()
    this.#endedLine = text === '' ? this.#endedLine : text.endsWith('\n') || text.endsWith('\r')
    // The last byte counts too, since the decoder may have buffered the beginning of a character.
    this.betweenMessages =
      !this.#stopped &&
      this.#skipping === undefined &&
      bytes.at(-1) === NEWLINE &&
      (text.endsWith('\n\n') || text.endsWith('\n\r\n'))
    if (this.betweenMessages) this.#listener = NO_LISTENER
  }

  /** Whether the stream ended within a message. Call it at the end of the stream; nothing more can be read after it. */
  endsWithinMessage(): boolean {
    if (this.#skipping !== undefined) return true
    let isAlone = false
    this.#listener = {
      ...NO_LISTENER,
      message: ({ id, event, data }) => (isAlone = id === undefined && event === undefined && data === ''),
    }
    this.#foundInvalid = false
    // Append an empty message. If it is reported with more than its own field, another message had begun.
    const rest = this.#decoder.decode()
    this.#feed(rest === '' && this.#endedLine ? '' : `${rest}\n`)
    this.#feed('data:\n\n')
    return !isAlone || this.#foundInvalid
  }

  #feed(text: string): void {
    this.#dispatched = false
    this.#parser.feed(text)
    this.#buffered = this.#dispatched ? text.length : this.#buffered + text.length
  }

  /** Feeds line by line, since a parser that overflows drops all of the text of that call. */
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

  /** Skips one line, or ends the skip at the blank line, which the parser gets first. Returns the index at which to continue. */
  #skip(text: string, from: number, state: SkipState): number {
    const first = text[from]
    if (state === 'after-return' && first === '\n') {
      this.#skipping = 'line-start'
      return from + 1
    }
    if (state !== 'in-line' && (first === '\n' || first === '\r')) {
      this.#skipping = undefined
      this.#buffered = 0
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

/** The index after the line that begins at `from` and its line end; the text's length if it has no line end. */
function lineEnd(text: string, from: number): number {
  const end = /\r\n?|\n/g
  end.lastIndex = from
  return end.exec(text) === null ? text.length : end.lastIndex
}
