import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

/** The approximate size of a write, in bytes. */
export const WRITE_BYTES = 64 * 1_024

/** Answers with an event stream of these chunks, with backpressure, until the client disconnects. */
export async function writeStream(
  response: ServerResponse,
  chunks: Iterable<string | Uint8Array>,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const left = new AbortController()
  response.once('close', () => left.abort())
  for (const chunk of chunks) {
    if (left.signal.aborted) return
    // Rejects when the client disconnects.
    if (!response.write(chunk)) await once(response, 'drain', left).catch(() => {})
  }
  response.end()
}
