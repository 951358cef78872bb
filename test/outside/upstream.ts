import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A research service with monitors whose events are numbered. It shares no code with the library. */
export class Upstream {
  /** When each event of each monitor was there, in Unix ms. */
  readonly emitted: ReadonlyMap<string, number[]>
  readonly #text: string
  readonly #server: Server

  /** @param length Number of characters in each event. */
  constructor(monitors: readonly string[], length: number) {
    this.emitted = new Map(monitors.map((monitor) => [monitor, []]))
    this.#text = 'x'.repeat(length)
    this.#server = createServer(({ url = '' }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://localhost')
      const [, , , monitor = '', events] = pathname.split('/')
      const body = events === undefined ? this.#monitor(monitor) : this.#page(monitor, searchParams)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const { port } = this.#server.address() as AddressInfo
    return `http://127.0.0.1:${port}`
  }

  emit(monitor: string, count: number): void {
    const times = this.emitted.get(monitor)
    for (let i = 0; i < count; i++) times?.push(Date.now())
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #monitor(id: string): object {
    return { monitor_id: id, type: 'event_stream', status: 'active', settings: { query: 'x' } }
  }

  /** Newest first. A cursor is the number of the newest event that is older. */
  #page(monitor: string, query: URLSearchParams): object {
    const newest = Number(query.get('cursor') ?? (this.emitted.get(monitor)?.length ?? 0) - 1)
    const oldest = Math.max(0, newest - Number(query.get('limit') ?? 20) + 1)
    const events = Array.from({ length: newest - oldest + 1 }, (_, i) => ({
      event_type: 'event_stream',
      event_id: `${monitor}-${newest - i}`,
      event_group_id: 'g',
      event_date: null,
      output: { type: 'text', content: this.#text, basis: [] },
    }))
    return oldest === 0 ? { events } : { events, next_cursor: String(oldest - 1) }
  }
}
