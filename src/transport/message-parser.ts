import { detached } from '../protocol/detached.ts'
import { withoutMark } from './utf8-chunks.ts'

/** One message of an event stream, its fields as the server wrote them. */
export interface StreamMessage {
  /** The `id:` field, where this message has one; it does not stand for the messages after it. */
  readonly id?: string | undefined
  /** The `event:` field. */
  readonly event?: string | undefined
  /** The `data:` lines, joined by newlines. */
  readonly data: string
}

/** Hears what a stream says. */
export interface MessageListener {
  message(message: StreamMessage): void
  /** The server's `retry:` field: how long to wait before connecting again, in ms. */
  retry(delay: number): void
  /** A message became longer than it may be. Nothing more is parsed. */
  tooLong(): void
}

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const COLON = 0x3a
const D = 0x64
const E = 0x65
const I = 0x69

/**
 * Parses an event stream (HTML standard, "event stream format") as it comes in, cut anywhere. Unknown fields, comments and
 * odd values are ignored, and an event whose blank line never comes is not told, as the format wants it.
 *
 * This is the hot path. Characters are looked at by the engine's own searches alone, for a carriage return in the chunk and
 * for each next newline; a line is cut out of the chunk for its value alone, and copied only where it is spread over
 * chunks.
 */
export class MessageParser {
  readonly #listener: MessageListener
  readonly #maxLength: number
  /** The beginning of a line whose end is still to come, in the pieces in which it came. */
  #pieces: string[] | undefined
  /** Characters of the pieces. */
  #pending = 0
  /** Characters of the present message's data. */
  #held = 0
  #started = false
  #stopped = false
  /** The last chunk ended with a carriage return, so a newline that comes first belongs to it. */
  #afterReturn = false
  #id: string | undefined
  #event: string | undefined
  #lastEvent = ''
  #data: string | undefined

  /** @param maxLength Characters that may be held for one message. */
  constructor(listener: MessageListener, maxLength: number) {
    this.#listener = listener
    this.#maxLength = maxLength
  }

  /** Nothing more is told, not even what the present chunk still holds. */
  stop(): void {
    this.#stopped = true
    this.#pieces = undefined
    this.#data = undefined
  }

  feed(chunk: string): void {
    let text = this.#started ? chunk : this.#start(chunk)
    if (this.#afterReturn || text.includes('\r')) text = this.#withNewlines(text)
    let from = 0
    let end = text.indexOf('\n')
    if (end !== -1 && this.#pieces !== undefined) {
      const line = this.#pieces.join('') + text.slice(0, end)
      this.#pieces = undefined
      this.#pending = 0
      this.#line(line, 0, line.length)
      from = end + 1
      end = text.indexOf('\n', from)
    }
    while (end !== -1 && !this.#stopped) {
      this.#line(text, from, end)
      from = end + 1
      end = text.indexOf('\n', from)
    }
    if (from < text.length && !this.#stopped) this.#keep(text.slice(from))
  }

  /** The stream may begin with a byte order mark. */
  #start(chunk: string): string {
    if (chunk === '') return chunk
    this.#started = true
    return withoutMark(chunk)
  }

  /** A line may end with a carriage return, a newline, or both. */
  #withNewlines(text: string): string {
    const rest = this.#afterReturn && text.charCodeAt(0) === NEWLINE ? text.slice(1) : text
    if (text !== '') this.#afterReturn = text.charCodeAt(text.length - 1) === CARRIAGE_RETURN
    return rest.replace(/\r\n?/g, '\n')
  }

  #keep(piece: string): void {
    this.#pieces ??= []
    this.#pieces.push(detached(piece))
    this.#pending += piece.length
    this.#checkLength()
  }

  #checkLength(): void {
    if (this.#pending + this.#held <= this.#maxLength) return
    this.stop()
    this.#listener.tooLong()
  }

  /** One line, from and up to these places of the text. */
  #line(text: string, from: number, end: number): void {
    if (from === end) return this.#dispatch()
    // By the first character, since most lines would otherwise be compared with several names.
    switch (text.charCodeAt(from)) {
      case D:
        if (!text.startsWith('data:', from)) break
        return this.#addData(text.slice(valueAt(text, from + 5), end))
      case I:
        if (!text.startsWith('id:', from)) break
        return this.#setId(text.slice(valueAt(text, from + 3), end))
      case E:
        if (!text.startsWith('event:', from)) break
        return this.#setEvent(text, valueAt(text, from + 6), end)
      case COLON:
        // A comment: a server's sign of life.
        return
      default:
    }
    this.#rare(text.slice(from, end))
  }

  /** A field that is not common, or has no value. */
  #rare(line: string): void {
    if (line === 'data') this.#addData('')
    else if (line === 'id') this.#setId('')
    else if (line === 'event') this.#event = undefined
    const [, delay] = /^retry: ?([0-9]+)$/.exec(line) ?? []
    if (delay !== undefined) this.#listener.retry(Number(delay))
  }

  #addData(line: string): void {
    this.#data = this.#data === undefined ? line : `${this.#data}\n${line}`
    this.#held += line.length + 1
    this.#checkLength()
  }

  #setId(id: string): void {
    if (!id.includes('\0')) this.#id = id
  }

  /** One message after the other has the same name, which need not be cut out again. */
  #setEvent(text: string, from: number, end: number): void {
    if (this.#lastEvent.length !== end - from || !text.startsWith(this.#lastEvent, from)) {
      this.#lastEvent = detached(text.slice(from, end))
    }
    this.#event = this.#lastEvent === '' ? undefined : this.#lastEvent
  }

  #dispatch(): void {
    const data = this.#data
    this.#held = 0
    if (data !== undefined) this.#listener.message({ id: this.#id, event: this.#event, data })
    this.#id = this.#event = this.#data = undefined
  }
}

/** Where a field's value begins: one space after the colon does not count. */
function valueAt(text: string, afterColon: number): number {
  return text.charCodeAt(afterColon) === SPACE ? afterColon + 1 : afterColon
}
