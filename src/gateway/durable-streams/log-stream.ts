import type { EventLog } from '../../log/event-log.ts'
import { LogClosedError, LogPositionError } from '../../log/errors.ts'
import type { Position } from '../../log/store/contract.ts'
import { nextCursor } from './cursor.ts'
import { Ending } from './ending.ts'
import { entityTag, isMatching } from './entity-tag.ts'
import { eventStream } from './event-stream.ts'
import { offsetOf } from './offset.ts'
import { streamReadOptions } from './read-options.ts'
import type { StreamReadOptions } from './read-options.ts'
import { VisibleEntries } from './visible-entries.ts'
import type { EntryAccess, VisiblePage } from './visible-entries.ts'
import { hasMore } from './waiting.ts'

/** What of a request's grant is needed. */
export interface StreamAccess extends EntryAccess {
  /** Calls the listener when the grant ends. Returns what removes it. */
  onEnd(listener: () => void): () => void
}

/** Settings of {@link LogStream}. */
export interface LogStreamOptions {
  /** Aborted when the gateway is closed. */
  readonly closing: AbortSignal
  /** How long a `long-poll` waits for an entry, in ms. Default 20,000. */
  readonly longPoll?: number
  /** How often there is an event in `sse` mode at least, in ms. Default 15,000. */
  readonly keepAlive?: number
}

/** The headers of the protocol, which scripts of other origins may read. */
const EXPOSED = 'ETag, Stream-Cursor, Stream-Next-Offset, Stream-Up-To-Date'

/**
 * The read side of the Durable Streams protocol (version 1.0) over a log: one stream of JSON messages, the entries that a grant makes
 * visible. An offset is a position of the log.
 */
export class LogStream {
  readonly #log: EventLog
  readonly #options: Required<LogStreamOptions>

  constructor(log: EventLog, { longPoll = 20_000, keepAlive = 15_000, closing }: LogStreamOptions) {
    this.#log = log
    this.#options = { longPoll, keepAlive, closing }
  }

  /**
   * Responds to a request of the protocol.
   *
   * @param admit Called before a live response: what counts it no more, or a refusal.
   */
  async respond(
    request: Request,
    access: StreamAccess,
    admit: () => (() => void) | Response,
  ): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return refused(405, 'invalid', 'the log can be read, with GET and HEAD', { allow: 'GET, HEAD, OPTIONS' })
    }
    const entries = new VisibleEntries(this.#log, access)
    if (entries.isEmpty) return refused(403, 'forbidden', 'the grant has no types of entries')
    const options = streamReadOptions(new URL(request.url).searchParams)
    if (typeof options === 'string') return refused(400, 'invalid', options)
    try {
      if (request.method === 'HEAD') return this.#head()
      if (options.live === 'none') return await this.#catchUp(request, entries, options)
      const released = admit()
      if (released instanceof Response) return released
      const ending = new Ending(access.onEnd.bind(access), [this.#options.closing, request.signal], released)
      return options.live === 'sse'
        ? await this.#follow(entries, options, ending)
        : await this.#longPoll(entries, options, ending)
    } catch (error) {
      if (error instanceof LogPositionError) return refused(410, 'gone', 'the offset is not one of this log: begin again with -1')
      if (error instanceof LogClosedError) return refused(503, 'unavailable', 'the log is closed')
      throw error
    }
  }

  async #head(): Promise<Response> {
    const tail = await this.#log.positionAt('end')
    return answered(200, { 'content-type': 'application/json', 'stream-next-offset': offsetOf(tail) })
  }

  async #catchUp(request: Request, entries: VisibleEntries, options: StreamReadOptions): Promise<Response> {
    const from = await this.#start(options)
    if (options.from === 'now') return json({ messages: [], position: from, isEnd: true }, { 'cache-control': 'no-store' })
    const page = await entries.read(from)
    if (isGone(page, options)) return gone(page)
    const response = await json(page, { 'cache-control': 'private, no-cache' })
    const tag = response.headers.get('etag')
    if (tag === null || !isMatching(request.headers.get('if-none-match'), tag)) return response
    await response.body?.cancel()
    return new Response(null, { status: 304, headers: response.headers })
  }

  async #longPoll(entries: VisibleEntries, options: StreamReadOptions, ending: Ending): Promise<Response> {
    try {
      const until = performance.now() + this.#options.longPoll
      let page = await entries.read(await this.#start(options))
      if (isGone(page, options)) return gone(page)
      for (;;) {
        const cursor = nextCursor(options.cursor, Date.now())
        if (page.messages.length > 0) return await json(page, { 'stream-cursor': cursor })
        const left = until - performance.now()
        const isOver = page.isEnd && !(await hasMore(this.#log, page.position, left, ending.signal))
        if (isOver || ending.signal.aborted || left <= 0) return empty(page, cursor)
        page = await entries.read(page.position)
      }
    } finally {
      ending.finish()
    }
  }

  async #follow(entries: VisibleEntries, options: StreamReadOptions, ending: Ending): Promise<Response> {
    let first: VisiblePage
    try {
      first = await entries.read(await this.#start(options))
    } catch (error) {
      ending.finish()
      throw error
    }
    if (isGone(first, options)) {
      ending.finish()
      return gone(first)
    }
    const { keepAlive } = this.#options
    const body = eventStream({ log: this.#log, entries, first, cursor: options.cursor, keepAlive, ending })
    return answered(
      200,
      { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' },
      body,
    )
  }

  #start({ from }: StreamReadOptions): Promise<Position> | Position {
    if (from === 'start') return this.#log.positionAt('start')
    return from === 'now' ? this.#log.positionAt('end') : from.position
  }
}
