import { createClient } from 'rivulet'
import { firstValueFrom, VirtualTimeScheduler } from 'rxjs'
import { expect, it } from 'vitest'

it('retries a request after the minute that the service requests', async () => {
  const answers = [
    new Response(null, { status: 503, headers: { 'retry-after': '60' } }),
    Response.json({ search_id: 'search_1', results: [] }),
  ]
  const scheduler = new VirtualTimeScheduler()
  const client = createClient({
    baseUrl: 'https://research.example',
    apiKey: 'key-of-a-test',
    scheduler,
    fetch: async () => answers.shift() ?? Response.error(),
  })
  // The client reports a retry before its delay is scheduled, so the flush is queued.
  client.diagnostics.subscribe(() => queueMicrotask(() => scheduler.flush()))

  const { results } = await firstValueFrom(client.search({ search_queries: ['tides'] }))

  expect(results).toEqual([])
  expect(scheduler.now()).toBe(60_000)
})
