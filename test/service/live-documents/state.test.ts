import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../../src/service/database.ts'
import { temporaryFolder } from '../running.ts'
import { type Content, html, INTERVAL, liveDocuments, site, sitemap } from './site.ts'

describe('the state of a source', () => {
  it('has the number of its pages, of those that fail, and the latest failure', async () => {
    const pages = await site({ '/a': html('a'), '/b': html('b'), '/c?token=hunter2': html('c') })
    pages.content['/s.xml'] = sitemap(`${pages.url}/a`, `${pages.url}/b`, `${pages.url}/c?token=hunter2`)
    const { live, pass } = await liveDocuments([`${pages.url}/s.xml`])
    expect(live.sources()).toMatchObject([{ urls: 4, pages: 3, failing: 0, last_error: null, error: null }])

    pages.content['/c?token=hunter2'] = { status: 502 }
    await pass(INTERVAL)

    const at = '2026-01-01T00:15:00.000Z'
    const last_error = { url: `${pages.url}/c?…`, code: 'http_502', at }
    // Its last copy stays in the index.
    expect(live.sources()).toMatchObject([{ urls: 4, pages: 3, failing: 1, last_error, error: null }])

    pages.content['/c?token=hunter2'] = html('c again')
    await pass(INTERVAL)
    expect(live.sources()).toMatchObject([{ failing: 0, last_error: null }])
  })

  it.each<[string, Content, string]>([
    ['a status', { status: 403 }, 'http_403'],
    ['a page that is gone', { status: 410 }, 'http_410'],
    ['another media type', { type: 'image/png', body: 'png' }, 'unsupported_content_type'],
    ['a cut connection', (_, response) => void response.destroy(), 'fetch_error'],
    ['an endless redirect', { status: 302, headers: { location: '/a' } }, 'too_many_redirects'],
    [
      'a redirect to another host',
      { status: 302, headers: { location: 'http://x.test/' } },
      'blocked_address',
    ],
    ['noindex', { headers: { 'x-robots-tag': 'noindex' }, body: html('x') }, 'noindex'],
  ])('has a code for %s', async (_, content, code) => {
    const pages = await site({ '/a': content })
    pages.content['/s.xml'] = sitemap(`${pages.url}/a`)
    const { live } = await liveDocuments([`${pages.url}/s.xml`])
    expect(live.sources()).toMatchObject([{ failing: 1, last_error: { url: `${pages.url}/a`, code } }])
  })

  it('has a code for a page that robots.txt disallows', async () => {
    const pages = await site({ '/robots.txt': { type: 'text/plain', body: 'User-agent: *\nDisallow: /a' } })
    pages.content['/s.xml'] = sitemap(`${pages.url}/a`)
    const { live } = await liveDocuments([`${pages.url}/s.xml`])
    expect(live.sources()).toMatchObject([{ failing: 1, last_error: { code: 'disallowed' } }])
  })

  it('is reported once when at least half of its URLs fail, and again after it was better', async () => {
    const paths = ['/a', '/b', '/c']
    const pages = await site()
    const set = (content: Content) => {
      for (const path of paths) pages.content[path] = content
    }
    set(html('good'))
    pages.content['/s.xml'] = sitemap(...paths.map((path) => pages.url + path))
    const { errors, pass } = await liveDocuments([`${pages.url}/s.xml`])

    set({ status: 403 })
    await pass(INTERVAL)
    await pass(2 * INTERVAL)
    const rotten = expect.stringContaining('/s.xml cannot be read completely: 2 of its 4 URLs were not read')
    expect(errors).toEqual([rotten])

    set(html('good'))
    await pass(4 * INTERVAL)
    set({ status: 403 })
    await pass(INTERVAL)
    expect(errors).toEqual([rotten, rotten])
  })

  it('is known from a data file of a version without codes', async () => {
    const file = join(await temporaryFolder(), 'research.db')
    const pages = await site({ '/': { status: 403 } })
    const first = await liveDocuments([pages.url], { file })
    await first.close()
    const database = openDatabase(file)
    database.exec('ALTER TABLE live_resources DROP COLUMN code')
    database.close()

    const second = await liveDocuments([pages.url], { file, settle: false })
    expect(second.live.sources()).toMatchObject([{ failing: 1, last_error: { code: 'fetch_error' } }])
  })
})
