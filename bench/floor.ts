import { Agent } from 'undici'
import type { Dispatcher } from 'undici'

const agent = new Agent()

/**
 * The floor: only what is necessary to read the events of a stream. Undici's dispatch, one decoding per chunk, a split at each
 * blank line, `JSON.parse` of the data. Calls `next` with each value; resolves with their number. Messages without data, such as
 * `retry:`, are not events.
 */
export function floorStream(
  url: string,
  path: string,
  next: (value: unknown) => void = () => {},
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const decoder = new TextDecoder()
    let rest = ''
    let count = 0
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => {},
      onResponseStart: () => {},
      onResponseData(_controller, bytes) {
        const text = rest + decoder.decode(bytes, { stream: true })
        let from = 0
        for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n', from)) {
          const data = text.indexOf('data: ', from)
          if (data !== -1 && data < end) {
            next(JSON.parse(text.slice(data + 6, end)))
            count += 1
          }
          from = end + 2
        }
        rest = text.slice(from)
      },
      onResponseEnd: () => resolve(count),
      onResponseError: (_controller, error) => reject(error),
    }
    // Without timeouts, as in the library's own transport.
    const timeouts = { headersTimeout: 0, bodyTimeout: 0 }
    agent.dispatch({ origin: url, path, method: 'GET', headers, ...timeouts }, handler)
  })
}
