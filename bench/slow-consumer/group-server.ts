import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { endedGroup, runFrame } from '../servers/run-frames.ts'

/** The contents of every group. */
export interface GroupSize {
  /** The number of ended runs, one event each. */
  readonly events: number
  /** The approximate size of each event's JSON, in bytes. */
  readonly bytes: number
}

/** The approximate size of a write, in bytes: less than a reader receives in one read, so that it has to pause within one. */
const WRITE_BYTES = 16 * 1_024

/**
 * A plain server of groups with only ended runs: their resumable stream of runs (§4.5), with backpressure, and their status. It
 * records the backpressure.
 */
export class GroupServer {
  /** The number of written events. */
  written = 0
  /** How often a write hit backpressure. */
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
      // Rejects when the client disconnects.
      await once(response, 'drain', left).catch(() => {})
    }
    response.end()
  }
}
