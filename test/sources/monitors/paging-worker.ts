/** A service in its own thread: a monitor with this many pages of one event. Counts the requests in shared memory. */
import { createServer } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

const { pages, requests }: { readonly pages: number; readonly requests: Int32Array } = workerData

const server = createServer((request, response) => {
  const page = Number(new URL(request.url ?? '', 'http://host').searchParams.get('cursor') ?? 1)
  Atomics.add(requests, 0, 1)
  Atomics.notify(requests, 0)
  const events = [{ event_type: 'completion', monitor_ts: 't', timestamp: `2026-01-0${page}T00:00:00Z` }]
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ events, ...(page < pages && { next_cursor: String(page + 1) }) }))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort?.postMessage(typeof address === 'object' ? address?.port : undefined)
})
