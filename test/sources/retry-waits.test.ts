import type { ServerResponse } from 'node:http'
import { createClient } from 'rivulet'
import type { WatchOptions } from 'rivulet'
import { VirtualTimeScheduler } from 'rxjs'
import { expect, it, onTestFinished } from 'vitest'
import { answer, openStream, serve } from '../support/serve.ts'

const DURATION = 120_000
/** More requests are those of a hot loop, which would not end. */
const MAX = 1_000

/** How many requests `count` sources that wait at the same time make within two minutes of a service that answers so. */
async function requestsOf(
  watched: WatchOptions,
  count: number,
  respond: (response: ServerResponse) => void,
): Promise<number> {
  let requests = 0
  const baseUrl = await serve((_request, response) => {
    requests += 1
    respond(response)
  })
  const scheduler = new VirtualTimeScheduler()
  // The longest delays, so that all sources wait at the same time.
  const client = createClient({ baseUrl, apiKey: 'key', scheduler, random: () => 1 })
  const watching = client.watch(watched).subscribe()
  onTestFinished(() => watching.unsubscribe())
  for (;;) {
    while (scheduler.actions.length < count) await new Promise((resolve) => void setImmediate(resolve))
    scheduler.flush()
    if (scheduler.now() >= DURATION || requests >= MAX) return requests
  }
}

it.each<[string, number, Record<string, string>]>([
  ['Retry-After: 0', 429, { 'retry-after': '0' }],
  ['Retry-After: 0.4', 503, { 'retry-after': '0.4' }],
  ['a past Retry-After', 429, { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }],
  ['a Retry-After that is no time', 503, { 'retry-after': 'now' }],
])('sources make no more requests of a service that refuses them with %s', async (_, status, headers) => {
  const refusing = (more: Record<string, string>) =>
    // A group has two streams.
    requestsOf({ monitors: ['m1', 'm2'], runs: ['r'], taskGroups: ['g'] }, 5, (response) => {
      for (const [name, value] of Object.entries(more)) response.setHeader(name, value)
      answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, status)
    })

  const without = await refusing({})

  expect(without).toBeLessThan(100)
  expect(await refusing(headers)).toBe(without)
})

it.each([0, 1])(
  'streams are opened no more often if the service sends retry: %d and closes them',
  async (retry) => {
    const closing = (text: string) =>
      requestsOf({ runs: ['r1', 'r2', 'r3', 'r4', 'r5'] }, 5, (response) => {
        const { headers, url = '' } = response.req
        const run_id = url.slice(url.lastIndexOf('/') + 1)
        if (headers.accept !== 'text/event-stream') return answer(response, { run_id, status: 'running' })
        openStream(response)
        response.end(text)
      })

    const without = await closing(': hello\n\n')

    expect(without).toBeLessThan(120)
    expect(await closing(`retry: ${retry}\n\n`)).toBe(without)
  },
)
