import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { endedGroup, runFrame } from '../servers/run-frames.ts'

/** What every group of the server holds. */
export interface GroupSize {
  /** Runs that have ended, each of which is one event of the stream. */
  readonly events: number
  /** Bytes of each event's JSON, about. */
  readonly bytes: number
}

/** Bytes that are written at once, about: less than a reader takes in at once, so that it has to stop in the midst of that. */
const WRITE_BYTES = 16 * 1_024

/**
 * A plain server of groups whose runs have all ended: their stream of runs (§4.5), resumable, as fast as the reader takes
 * it, and their status. It notes how it is held back.
 */
export class GroupServer {
  /** Events that were written. */
  written = 0
  /** Times that the socket would take no more. */
  heldBack = 0
  readonly #size: GroupSize

  constructor(size: GroupSize) {
    this.#size = size
  }

  readonly listener = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    const [, group] = /^\/v1beta\/tasks\/groups\/([^/]+)\/runs$/.exec(pathname) ?? []
    if (group !== undefined) {
      void this.#stream(response, group, Number(searchParams.get('last_event_id') ?? 0))
    } else if (/^\/v1\/tasks\/groups\/[^/]+$/.test(pathname)) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(endedGroup(this.#size.events)))
    } else {
      response.writeHead(404).end()
    }
  }

  async #stream(response: ServerResponse, group: string, after: number): Promise<void> {
    const left = new AbortController()
    response.on('close', () => left.abort())
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const { events, bytes } = this.#size
    const batch = Math.ceil(WRITE_BYTES / bytes)
    for (let n = after; n < events && !left.signal.aborted; n += batch) {
      const last = Math.min(n + batch, events)
      let frames = ''
      for (let id = n + 1; id <= last; id++) frames += runFrame(group, id, bytes)
      this.written += last - n
      if (response.write(frames)) continue
      this.heldBack += 1
      // Rejects when the reader has left.
      await once(response, 'drain', left).catch(() => {})
    }
    response.end()
  }
}
