import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MonitorEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../service/corpus/folder.ts'
import { html, INTERVAL, site, sitemap } from '../service/live-documents/site.ts'
import { temporaryFolder } from '../service/running.ts'
import { research, type Research } from './research.ts'

const HOUR = 3_600_000

/** Lets time pass, and waits until the monitor was executed. */
async function pass({ service, clock }: Research, ms: number): Promise<void> {
  const before = service.records().monitor_events.length
  clock.advance(ms)
  await expect
    .poll(() => service.records().monitor_events.length, { interval: 2, timeout: 10_000 })
    .toBeGreaterThan(before)
}

const events = ({ service }: Research): readonly MonitorEvent[] =>
  service.records().monitor_events.map(({ event }) => event)

describe('a service with a page as its source', () => {
  it('does not count a request that its end has aborted as a failure of the page', async () => {
    const requested = Promise.withResolvers<void>()
    const intranet = await site({ '/': () => requested.resolve() })
    const errors: unknown[] = []
    const options = {
      docs: undefined,
      sources: [intranet.url],
      data: join(await temporaryFolder(), 'research.db'),
      allowPrivateAddresses: true,
      onError: (error: unknown) => errors.push(error),
    }
    const { service } = await research(options)
    await requested.promise
    await service.close()

    const again = await research(options)
    expect(errors).toEqual([])
    expect(again.service.sources).toMatchObject([{ url: `${intranet.url}/`, error: null }])
  })

  it('reports a change of the page once by a monitor, and finds the new text', async () => {
    const intranet = await site({ '/': html('The tide tables of January are out.') })
    const service = await research({ docs: undefined, sources: [intranet.url], allowPrivateAddresses: true })
    await service.client.monitors.create({
      type: 'event_stream',
      frequency: '1h',
      settings: { query: 'tide tables' },
    })
    await expect.poll(() => events(service), { interval: 2, timeout: 10_000 }).toHaveLength(1)

    intranet.content['/'] = html(
      'The tide tables of January are out.</p><p>The tide tables of February are out.',
    )
    await pass(service, HOUR)
    await pass(service, HOUR)

    const reported = events(service).filter(({ event_type }) => event_type === 'event_stream')
    expect(reported).toHaveLength(1)
    expect(JSON.stringify(reported)).toContain('February')
    const { results } = await service.client.search({ search_queries: ['February'] })
    expect(results.map(({ url }) => url)).toEqual([`${intranet.url}/`])
  })

  it('sees the pages as they are when a monitor and a refresh are due at the same time', async () => {
    const intranet = await site({ '/': html('The tide tables of January are out.') })
    const service = await research({
      docs: undefined,
      sources: [intranet.url],
      allowPrivateAddresses: true,
      refreshInterval: 4 * INTERVAL,
    })
    await service.client.monitors.create({
      type: 'event_stream',
      frequency: '1h',
      settings: { query: 'tide tables' },
    })
    await expect.poll(() => events(service), { interval: 2, timeout: 10_000 }).toHaveLength(1)

    intranet.content['/'] = html('The tide tables of March are out.')
    await pass(service, HOUR)

    expect(JSON.stringify(events(service).slice(1))).toContain('March')
  })

  it('refuses a source on a private address unless it is allowed', async () => {
    const intranet = await site({ '/': html('internal') })
    const errors: unknown[] = []
    const { service } = await research({
      sources: [intranet.url],
      onError: (error) => errors.push(error),
    })
    await service.corpus.settled()

    expect([service.corpus.size, intranet.requests]).toEqual([0, []])
    expect(errors.map(String)).toEqual([
      expect.stringMatching(/DocumentSourceError.*not an address of the public Internet/),
    ])
  })

  it('has the pages of a sitemap, one request after another', async () => {
    const intranet = await site()
    intranet.content['/sitemap.xml'] = sitemap(`${intranet.url}/a`, `${intranet.url}/b`)
    intranet.content['/a'] = html('ebb')
    intranet.content['/b'] = html('flood')
    const { service, clock } = await research({
      docs: undefined,
      sources: [`${intranet.url}/sitemap.xml`],
      allowPrivateAddresses: true,
    })

    await expect
      .poll(
        () => {
          clock.advance(1_000)
          return service.corpus.size
        },
        { interval: 2, timeout: 10_000 },
      )
      .toBe(2)
    expect(service.corpus.document(`${intranet.url}/b`)?.text).toBe('flood')
  })

  it('has a page whose URL is that of a file once, as the file while there is one', async () => {
    const intranet = await site({ '/a.md': { type: 'text/markdown', body: 'The page of the tide.' } })
    const folder = await folderOf({ 'a.md': 'The file of the tide.' })
    const { service, client } = await research({
      docs: { folder, site: intranet.url },
      sources: [`${intranet.url}/a.md`],
      allowPrivateAddresses: true,
    })
    const found = async () => {
      await service.corpus.settled()
      const { results } = await client.search({ search_queries: ['tide'] })
      return results.map(({ url, excerpts }) => [url, excerpts.join(' ')])
    }
    const url = `${intranet.url}/a.md`
    expect(await found()).toEqual([[url, 'The file of the tide.']])
    expect([service.corpus.size, service.corpus.document(url)?.text]).toEqual([1, 'The file of the tide.'])
    expect(service.sources).toMatchObject([{ pages: 1, failing: 0 }])

    await rm(join(folder, 'a.md'))
    expect(await found()).toEqual([[url, 'The page of the tide.']])

    await writeFile(join(folder, 'a.md'), 'The new file of the tide.')
    expect(await found()).toEqual([[url, 'The new file of the tide.']])
    expect(service.corpus.size).toBe(1)
  })

  it('refuses a URL with credentials without showing them', async () => {
    const failure = await research({ sources: ['https://anna:hunter2@example.org/'] }).then(
      () => undefined,
      (error: unknown) => String(error),
    )
    expect(failure).toMatch(/sources\[0\] must be/)
    expect(failure).not.toContain('hunter2')
  })
})
