import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createClient } from 'rivulet'
import { lastValueFrom, tap, toArray } from 'rxjs'
import { expect, it, onTestFinished } from 'vitest'

const PAGES = 6
/** Reached only if the test fails, in ms. */
const TIMEOUT = 5_000

it('the service receives the next request while a consumer blocks the event loop', async () => {
  const requests = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(new URL('paging-worker.ts', import.meta.url), {
    workerData: { pages: PAGES, requests },
  })
  onTestFinished(async () => void (await worker.terminate()))
  const [port]: unknown[] = await once(worker, 'message')
  const client = createClient({ baseUrl: `http://127.0.0.1:${String(port)}`, apiKey: 'key' })

  let page = 0
  const waits = client.monitors.events('m').pipe(
    tap(() => {
      page += 1
      // The second request waits for a new connection.
      if (page === 1 || page === PAGES) return
      while (Atomics.load(requests, 0) <= page) {
        const waited = Atomics.wait(requests, 0, page, TIMEOUT)
        if (waited === 'timed-out') throw new Error(`no request for the page after ${page}`)
      }
    }),
    toArray(),
  )

  await expect(lastValueFrom(waits)).resolves.toHaveLength(PAGES)
})
