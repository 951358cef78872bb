import type { EventLog } from '../../log/event-log/event-log.ts'
import { LogClosedError, LogPositionError } from '../../log/errors.ts'
import type { Position } from '../../log/store/contract.ts'
import type { Access } from '../access/access.ts'
import { refusalResponse } from '../http-answer.ts'
import { Ending } from './ending.ts'
import { eventStream } from './event-stream.ts'
import { offsetOf, positionOf } from './offset.ts'
import { EVENT_STREAM_HEADERS } from '../../http/server-sent-events.ts'
import { emptyAnswer, HEADERS, pageAnswer } from './page-answer.ts'
import { VisibleEntries } from './visible-entries.ts'
import type { EntryAccess, VisiblePage } from './visible-entries.ts'
import { hasMore } from './waiting.ts'

/** The part of a request's access that a stream needs. */
export type StreamAccess = EntryAccess & Pick<Access, 'onEnd'>

/** Counts a response of a subject. Returns a function for its end, or a refusal. */
type Admit = () => (() => void) | Response

/** Limits what a subject may have at the same time. */
export interface Admission {
  /** Called before a live response. */
  readonly live: Admit
  /** Called before a page is read for a response that does not wait. */
  readonly read: Admit
}

/** Settings of {@link LogStream}. */
export interface LogStreamOptions {
  /** Aborted when the gateway is closed. */
  readonly closing: AbortSignal
  /** How long a long poll waits for an entry, in ms. Default 20,000. */
  readonly longPoll?: number
  /** How often there is an event in `sse` mode at least, in ms. Default 15,000. */
  readonly keepAlive?: number
  /** How long a client in `sse` mode may take to read the end, in ms, until it is cut off. Default 5,000. */
  readonly grace?: number
}

/**
 * The read side of the Durable Streams protocol (version 1.0) over a log. It is one stream of JSON messages: the entries that a
 * grant makes visible. An offset is a position of the log.
 */
export class LogStream {
  readonly #log: EventLog
  readonly #closing: AbortSignal
  readonly #longPoll: number
  readonly #keepAlive: number
  readonly #grace: number

  constructor(
    log: EventLog,
    { closing, longPoll = 20_000, keepAlive = 15_000, grace = 5_000 }: LogStreamOptions,
  ) {
    this.#log = log
    this.#closing = closing
    this.#longPoll = longPoll
    this.#keepAlive = keepAlive
    this.#grace = grace
  }

  /** Responds to a GET or HEAD of the protocol. */
  async respond(request: Request, access: StreamAccess, admission: Admission): Promise<Response> {
    const entries = new VisibleEntries(this.#log, access)
    const options = streamReadOptions(new URL(request.url).searchParams)
    if (entries.isEmpty) return refused('forbidden', 'the grant has no types of entries')
    if (typeof options === 'string') return refused('invalid', options)
    try {
      if (request.method === 'HEAD') return await this.#head()
      const release = options.live === 'none' ? admission.read() : admission.live()
      if (release instanceof Response) return release
      if (options.live === 'none') {
        return await this.#catchUp(request, entries, options).finally(release)
      }
      const ending = new Ending(access.onEnd.bind(access), [this.#closing, request.signal], release)
      return options.live === 'sse'
        ? await this.#follow(entries, options, ending)
        : await this.#poll(entries, options, ending)
    } catch (error) {
      if (error instanceof LogPositionError)
        return refused('invalid', `the offset is of another log: ${FROM_START}`, 410)
      if (error instanceof LogClosedError) return refused('unavailable', 'the log is closed')
      throw error
    }
  }

  async #head(): Promise<Response> {
    const position = await this.#log.positionAt('end')
    const headers = {
      ...HEADERS,
      'cache-control': 'no-store',
      'content-type': 'application/json',
      'stream-next-offset': offsetOf(position),
    }
    return new Response(null, { headers })
  }

  async #catchUp(request: Request, entries: VisibleEntries, options: StreamReadOptions): Promise<Response> {
    const from = await this.#start(options)
    if (options.from === 'now') {
      return pageAnswer(
        { messages: [], position: from, isEnd: true, isAfterGap: false },
        { caching: 'no-store' },
      )
    }
    const page = await entries.read(from)
    if (isGone(page, options)) return refusedGap()
    const ifNoneMatch = request.headers.get('if-none-match')
    return pageAnswer(page, { caching: 'private, no-cache', ifNoneMatch })
  }

  async #poll(entries: VisibleEntries, options: StreamReadOptions, ending: Ending): Promise<Response> {
    const { cursor } = options
    const until = performance.now() + this.#longPoll
    try {
      const start = { messages: [], position: await this.#start(options), isEnd: false, isAfterGap: false }
      let page: VisiblePage = start
      do {
        const next = await entries.read(page.position)
        if (page === start && isGone(next, options)) return refusedGap()
        // Entries that are read while the grant ends are no longer sent.
        if (ending.signal.aborted) break
        page = next
        if (page.messages.length > 0) break
        const left = until - performance.now()
        if (page.isEnd && !(await hasMore(this.#log, page.position, left, ending.signal))) break
      } while (!ending.signal.aborted && performance.now() < until)
      // Not at the end, there is nothing to wait for: the client asks for the rest.
      return page.messages.length === 0 && page.isEnd
        ? emptyAnswer(page, cursor)
        : await pageAnswer(page, { caching: 'private, no-cache', cursor })
    } finally {
      ending.finish()
    }
  }

  async #follow(entries: VisibleEntries, options: StreamReadOptions, ending: Ending): Promise<Response> {
    let first: VisiblePage | undefined
    try {
      first = await entries.read(await this.#start(options))
    } finally {
      if (first === undefined || isGone(first, options)) ending.finish()
    }
    if (isGone(first, options)) return refusedGap()
    const { cursor } = options
    const body = eventStream({
      log: this.#log,
      entries,
      first,
      cursor,
      keepAlive: this.#keepAlive,
      ending,
      grace: this.#grace,
    })
    return new Response(body, { headers: { ...HEADERS, ...EVENT_STREAM_HEADERS } })
  }

  async #start({ from }: StreamReadOptions): Promise<Position> {
    if (from === 'start') return this.#log.positionAt('start')
    return from === 'now' ? this.#log.positionAt('end') : from.position
  }
}

const FROM_START = 'begin again with the offset -1'

/** Whether entries that the client has asked for were deleted. While it follows the log, a message says so. */
function isGone(page: VisiblePage, { from }: StreamReadOptions): boolean {
  return page.isAfterGap && typeof from === 'object'
}

function refusedGap(): Response {
  return refused('invalid', `the log has deleted entries after the offset: ${FROM_START}`, 410)
}

function refused(code: 'forbidden' | 'invalid' | 'unavailable', message: string, status?: number): Response {
  return refusalResponse(code, message, { headers: HEADERS, ...(status !== undefined && { status }) })
}

/** How a client reads, as its query says. */
interface StreamReadOptions {
  /** `start` for the first entry that the log still has, `now` for the entries from now on. */
  readonly from: 'start' | 'now' | { readonly position: Position }
  readonly live: 'none' | 'long-poll' | 'sse'
  /** The cursor of the response before. */
  readonly cursor: string | null
}

/** The options in a query, or a text that describes the problem with it. Parameters that the protocol does not know are ignored. */
function streamReadOptions(query: URLSearchParams): StreamReadOptions | string {
  const offsets = query.getAll('offset')
  const [offset] = offsets
  if (offsets.length > 1) return 'there is more than one offset'
  const live = query.get('live')
  if (live !== null && live !== 'long-poll' && live !== 'sse') return 'live is long-poll or sse'
  if (offset === undefined && live !== null) return `live=${live} needs an offset`
  const cursor = query.get('cursor')
  const options = { live: live ?? 'none', cursor } as const
  if (offset === undefined || offset === '-1') return { ...options, from: 'start' }
  if (offset === 'now') return { ...options, from: 'now' }
  const position = positionOf(offset)
  if (position === undefined)
    return 'the offset is malformed: begin with -1 or now, and go on from Stream-Next-Offset'
  return { ...options, from: { position } }
}
