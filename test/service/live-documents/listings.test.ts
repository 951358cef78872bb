import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { temporaryFolder } from '../running.ts'
import { IsolatedError } from '../../../src/service/isolated/isolated-error.ts'
import { html, INTERVAL, isolated, liveDocuments, MINUTE, site, sitemap, xml } from './site.ts'

const indexOf = (...urls: readonly string[]) =>
  xml(`<sitemapindex>${urls.map((url) => `<sitemap><loc>${url}</loc></sitemap>`).join('')}</sitemapindex>`)

const lines = (...urls: readonly string[]) => ({ type: 'text/plain', body: urls.join('\r\n') })

const rss = (items: string) =>
  xml(`<?xml version="1.0"?><rss version="2.0"><channel>${items}</channel></rss>`)

describe('a sitemap', () => {
  it('has the pages of its own host, each once', async () => {
    const pages = await site({ '/a': html('ebb'), '/b': html('flood') })
    const other = await site({ '/': html('elsewhere') })
    pages.content['/sitemap.xml'] = sitemap(
      `${pages.url}/a`,
      ` ${pages.url}/b#part `,
      `${pages.url}/a`,
      '/b',
      `${other.url}/`,
      'javascript:alert(1)',
      `http://anna:secret@${pages.host}/c`,
      '',
    )
    const { corpus, live } = await liveDocuments([`${pages.url}/sitemap.xml`])

    expect(pages.paths()).toEqual(['/sitemap.xml', '/a', '/b'])
    expect(other.requests).toEqual([])
    expect([corpus.size, live.sources()[0]?.urls]).toEqual([2, 3])
  })

  it('may be compressed, and in another encoding', async () => {
    const pages = await site({ '/a': html('ebb') })
    const body = `<?xml version="1.0" encoding="ISO-8859-1"?><urlset><!-- caf\u00e9 --><url><loc>${pages.url}/a</loc></url></urlset>`
    pages.content['/sitemap.xml.gz'] = {
      type: 'application/x-gzip',
      body: gzipSync(Buffer.from(body, 'latin1')),
    }
    const { corpus } = await liveDocuments([`${pages.url}/sitemap.xml.gz`])
    expect(corpus.size).toBe(1)
  })

  it('may be an index of sitemaps, also one that contains itself', async () => {
    const pages = await site({ '/a': html('ebb'), '/b': html('flood') })
    const { url, content } = pages
    content['/index.xml'] = indexOf(`${url}/one.xml`, `${url}/loop.xml`, `${url}/index.xml`)
    content['/loop.xml'] = indexOf(`${url}/index.xml`, `${url}/two.xml`, `${url}/loop.xml`)
    content['/one.xml'] = sitemap(`${url}/a`)
    content['/two.xml'] = sitemap(`${url}/b`)
    const { corpus } = await liveDocuments([`${url}/index.xml`])

    expect(corpus.size).toBe(2)
    expect(pages.paths().toSorted()).toEqual(['/a', '/b', '/index.xml', '/loop.xml', '/one.xml', '/two.xml'])
  })

  it('is not requested again because sitemaps that list each other have new dates each time', async () => {
    const pages = await site()
    const { url, content } = pages
    let version = 0
    const listing = (other: string) => (_: unknown, response: ServerResponse) => {
      const day = new Date(Date.UTC(2026, 0, (version += 1))).toISOString().slice(0, 10)
      response.writeHead(200, { 'content-type': 'application/xml' })
      response.end(
        `<sitemapindex><sitemap><loc>${url}${other}</loc><lastmod>${day}</lastmod></sitemap></sitemapindex>`,
      )
    }
    content['/one.xml'] = listing('/two.xml')
    content['/two.xml'] = (request, response) => {
      // More requests would never end.
      if (version > 20) response.writeHead(410).end()
      else listing('/one.xml')(request, response)
    }
    const { pass } = await liveDocuments([`${url}/one.xml`])
    expect(pages.paths()).toEqual(['/one.xml', '/two.xml'])

    await pass(INTERVAL)
    expect(pages.paths().toSorted()).toEqual(['/one.xml', '/two.xml'])
  })

  it('stays one when it is no source any more, but another sitemap lists it', async () => {
    const file = `${await temporaryFolder()}/data.db`
    const pages = await site({ '/a': html('ebb'), '/b': html('flood') })
    const { url, content } = pages
    content['/index.xml'] = indexOf(`${url}/part.xml`)
    content['/part.xml'] = sitemap(`${url}/a`)
    const first = await liveDocuments([`${url}/index.xml`, `${url}/part.xml`], { file })
    await first.close()

    content['/part.xml'] = sitemap(`${url}/a`, `${url}/b`)
    const second = await liveDocuments([`${url}/index.xml`], { file, clock: first.clock })
    await second.pass(INTERVAL)
    expect(second.corpus.size).toBe(2)
  })

  it('is followed to the third level of an index', async () => {
    const pages = await site({ '/deep': html('deep') })
    const { url, content } = pages
    for (let level = 0; level < 5; level += 1) content[`/${level}.xml`] = indexOf(`${url}/${level + 1}.xml`)
    const { errors } = await liveDocuments([`${url}/0.xml`])

    expect(pages.paths()).toEqual(['/0.xml', '/1.xml', '/2.xml', '/3.xml'])
    expect(errors).toEqual([expect.stringContaining('/3.xml cannot be read completely: it lists 1 URLs')])
  })

  it('has the first pages up to the limit, and reports the others once', async () => {
    const pages = await site()
    const urls = Array.from({ length: 60_000 }, (_, index) => `${pages.url}/${index}`)
    for (const index of [0, 1, 2]) pages.content[`/${index}`] = html(`page ${index}`)
    pages.content['/sitemap.xml'] = sitemap(...urls)
    const limits = { perSource: 4 }
    const { corpus, errors, pass, live } = await liveDocuments([`${pages.url}/sitemap.xml`], { limits })
    pages.content['/sitemap.xml'] = sitemap(...urls, `${pages.url}/more`)
    await pass(INTERVAL)

    expect([corpus.size, live.sources()[0]?.urls]).toEqual([3, 4])
    expect(errors).toEqual([expect.stringContaining('it lists 49997 URLs beyond the limits')])
  })

  it('requests a new page at once, and one with a new lastmod', async () => {
    const pages = await site({ '/a': html('one'), '/b': html('two') })
    const dated = (date: string, more = '') =>
      xml(`<urlset><url><loc>/a</loc><lastmod>${date}</lastmod></url>${more}</urlset>`)
    pages.content['/s.xml'] = dated('2026-01-01')
    pages.content['/a'] = { headers: { 'cache-control': 'max-age=86400' }, body: html('old') }
    const { pass, corpus } = await liveDocuments([`${pages.url}/s.xml`])
    expect(corpus.document(`${pages.url}/a`)).toMatchObject({ text: 'old', publishDate: '2026-01-01' })
    pages.content['/a'] = html('new')
    pages.paths()

    await pass(INTERVAL)
    expect(pages.paths()).toEqual(['/s.xml'])

    pages.content['/s.xml'] = dated('2026-01-02', '<url><loc>/b</loc></url>')
    await pass(INTERVAL)
    expect(pages.paths().toSorted()).toEqual(['/a', '/b', '/s.xml'])
    expect(corpus.document(`${pages.url}/a`)).toMatchObject({ text: 'new', publishDate: '2026-01-02' })
  })

  it('keeps a page that it does not list any more, while the page exists', async () => {
    const pages = await site({ '/a': html('one') })
    pages.content['/s.xml'] = sitemap(`${pages.url}/a`)
    const { pass, corpus } = await liveDocuments([`${pages.url}/s.xml`])
    pages.content['/s.xml'] = sitemap()
    await pass(INTERVAL)
    expect(corpus.size).toBe(1)

    delete pages.content['/a']
    await pass(INTERVAL)
    await pass(INTERVAL)
    expect(corpus.size).toBe(0)
  })
})

describe('a feed', () => {
  it.each([
    ['RSS 2.0', (url: string) => rss(`<item><link>${url}/a</link></item><item><guid>${url}/b</guid></item>`)],
    [
      'RSS 1.0',
      (url: string) =>
        xml(
          `<rdf:RDF xmlns:rdf="x"><channel/><item rdf:about="${url}/a"><link>${url}/a</link></item><item rdf:about="${url}/b"/></rdf:RDF>`,
        ),
    ],
    [
      'Atom',
      (url: string) =>
        xml(
          `<feed><link href="/self" rel="self"/><entry><link rel="edit" href="/edit"/><link href="/a"/><id>1</id></entry><entry><id>2</id><link rel="alternate" href="${url}/b"/></entry></feed>`,
          'application/atom+xml',
        ),
    ],
    [
      'a feed with another media type',
      (url: string) => ({
        type: 'text/html',
        body: `<!-- x --><rss><item><link>${url}/a</link></item><item><link>${url}/b</link></item></rss>`,
      }),
    ],
  ])('has the pages of its items: %s', async (_, content) => {
    const pages = await site({ '/a': html('ebb'), '/b': html('flood') })
    pages.content['/feed'] = content(pages.url)
    const { corpus } = await liveDocuments([`${pages.url}/feed`])

    expect(pages.paths()).toEqual(['/feed', '/a', '/b'])
    expect(corpus.size).toBe(2)
  })

  it('has the content of items without a page on its host, under its own URL', async () => {
    const pages = await site({
      '/feed': rss(`
        <item><title>Tides &amp; winds</title><guid>1</guid><pubDate>Tue, 03 Mar 2026 23:30:00 -0500</pubDate>
          <link>https://bank.example/</link><description>&lt;p&gt;The &lt;b&gt;moon&lt;/b&gt;.&lt;/p&gt;</description></item>
        <item><title>Sun</title><content:encoded><![CDATA[<p>The sun.</p><script>x</script>]]></content:encoded><description>short</description></item>
        <item><link>https://other.example/</link></item>`),
    })
    const { corpus, find } = await liveDocuments([`${pages.url}/feed`])

    expect(corpus.size).toBe(2)
    expect(corpus.document('https://bank.example/')).toBeUndefined()
    const [moon = ''] = find('moon')
    expect(moon).toMatch(new RegExp(`^${pages.url}/feed#[0-9a-f]+$`))
    expect(corpus.document(moon)).toMatchObject({
      title: 'Tides & winds',
      publishDate: '2026-03-04',
      text: 'The **moon**.',
    })
    expect(corpus.document(find('sun')[0] ?? '')?.text).toBe('The sun.')
  })

  it('keeps items that it does not have any more, and has repeated ones once', async () => {
    const item = (id: string, text: string) =>
      `<item><guid>${id}</guid><description>${text}</description></item>`
    const pages = await site({ '/feed': rss(item('1', 'ebb') + item('1', 'ebb again') + item('2', 'flood')) })
    const { corpus, pass, find, live } = await liveDocuments([`${pages.url}/feed`])
    expect(corpus.size).toBe(2)

    pages.content['/feed'] = rss(item('3', 'storm') + item('2', 'flood of the year'))
    await pass(INTERVAL)

    expect([corpus.size, find('ebb').length, find('storm').length, find('year').length]).toEqual([3, 1, 1, 1])
    expect(live.sources()[0]?.error).toBeNull()
  })

  it('replaces the oldest items when it has more than the limit', async () => {
    const item = (id: number) => `<item><guid>${id}</guid><description>item${id}</description></item>`
    const pages = await site({ '/feed': rss(item(1) + item(2)) })
    const { corpus, pass, find } = await liveDocuments([`${pages.url}/feed`], { limits: { perSource: 3 } })
    pages.content['/feed'] = rss(item(2) + item(3))
    await pass(INTERVAL)

    expect([corpus.size, find('item1'), find('item3').length]).toEqual([2, [], 1])
  })

  it('ignores malformed items', async () => {
    const pages = await site({ '/a': html('ebb') })
    pages.content['/feed'] = rss(
      `<item/><item><link>http://[</link></item><item><title/><link/></item>
       <item><link>/a</link><link>/b</link></item><item><link>/${'x'.repeat(5_000)}</link></item><item><link>/unclosed`,
    )
    const { corpus, errors } = await liveDocuments([`${pages.url}/feed`])
    expect([corpus.size, errors]).toEqual([1, []])
  })

  it('has the text of XHTML in Atom', async () => {
    const pages = await site({
      '/feed': xml(
        '<feed><entry><id>1</id><content type="xhtml"><div><p>One &lt; two.</p><p>Three.</p></div></content></entry></feed>',
      ),
    })
    const { corpus, find } = await liveDocuments([`${pages.url}/feed`])
    expect(corpus.document(find('three')[0] ?? '')?.text).toBe('One < two.\n\nThree.')
  })
})

describe('a sitemap of plain text', () => {
  it('has the pages of its own host, each once', async () => {
    const pages = await site({ '/a': html('ebb'), '/b': html('flood') })
    const other = await site({ '/': html('elsewhere') })
    pages.content['/sitemap.txt'] = lines(
      `\uFEFF${pages.url}/a`,
      '',
      `  ${pages.url}/b  `,
      `${pages.url}/a`,
      `${other.url}/`,
      `http://anna:secret@${pages.host}/c`,
      '',
    )
    const { corpus } = await liveDocuments([`${pages.url}/sitemap.txt`])

    expect(pages.paths()).toEqual(['/sitemap.txt', '/a', '/b'])
    expect(other.requests).toEqual([])
    expect(corpus.size).toBe(2)
  })

  it('may be compressed, and listed by an index of sitemaps', async () => {
    const pages = await site({ '/a': html('ebb'), '/b': html('flood') })
    pages.content['/one.txt'] = lines(`${pages.url}/a`)
    pages.content['/two.txt.gz'] = { type: 'application/gzip', body: gzipSync(`${pages.url}/b\n`) }
    pages.content['/index.xml'] = indexOf(`${pages.url}/one.txt`, `${pages.url}/two.txt.gz`)
    const { find } = await liveDocuments([`${pages.url}/index.xml`])

    expect([find('ebb'), find('flood')]).toEqual([[`${pages.url}/a`], [`${pages.url}/b`]])
  })

  it('has at most 50,000 URLs and 10 MiB, as one of XML', async () => {
    const pages = await site()
    const urls = Array.from({ length: 50_002 }, (_, index) => `${pages.url}/${index}`)
    pages.content['/s.txt'] = lines(...urls)
    const { errors } = await liveDocuments([`${pages.url}/s.txt`], { limits: { perSource: 1 } })
    expect(errors).toEqual([expect.stringContaining('it lists 50000 URLs beyond the limits')])

    pages.content['/s.txt'] = lines(`${pages.url}/${'x'.repeat(11 * 2 ** 20)}`)
    const second = await liveDocuments([`${pages.url}/s.txt`])
    expect(second.live.sources()[0]?.error).toBe('The response is longer than 10485760 bytes')
  })

  it('is a page if it has another line, or is HTML', async () => {
    const pages = await site()
    pages.content['/notes.txt'] = lines(`${pages.url}/a`, 'is where the tide is')
    pages.content['/page'] = { body: `${pages.url}/a` }
    const { corpus } = await liveDocuments([`${pages.url}/notes.txt`, `${pages.url}/page`])

    expect(pages.paths()).toEqual(['/notes.txt', '/page'])
    expect(corpus.size).toBe(2)
  })
})

describe('a feed whose content takes long', () => {
  const item = (id: number, text: string) =>
    `<item><guid>${id}</guid><title>News</title><description>${text}</description></item>`

  it('loses the items that cannot be read, and keeps their copies', async () => {
    const pages = await site({ '/feed': rss(item(1, 'ebb') + item(2, 'flood')) })
    let failing = ''
    const { pass, find, errors } = await liveDocuments([`${pages.url}/feed`], {
      isolated: {
        ...isolated,
        readPage: (source, signal) =>
          Buffer.from(source.body).toString() === failing
            ? Promise.reject(new IsolatedError('timeout', 'too long'))
            : isolated.readPage(source, signal),
      },
    })
    failing = 'slow'
    pages.content['/feed'] = rss(item(1, 'slow') + item(2, 'neap'))
    await pass(INTERVAL)

    expect([find('ebb').length, find('flood').length, find('neap').length]).toEqual([1, 0, 1])
    expect(errors).toEqual([expect.stringContaining('1 of its items cannot be read, or not in time')])
  })

  it('is read for 30 s at most, and read again', async () => {
    const pages = await site({ '/feed': rss(item(1, 'ebb') + item(2, 'flood') + item(3, 'neap')) })
    const clock = new ManualClock()
    let isSlow = true
    const { pass, find, errors } = await liveDocuments([`${pages.url}/feed`], {
      clock,
      isolated: {
        ...isolated,
        readPage: (source, signal) => {
          if (isSlow) clock.advance(15_000)
          return isolated.readPage(source, signal)
        },
      },
      settle: false,
    })
    await expect.poll(() => find('flood').length, { interval: 2, timeout: 10_000 }).toBe(1)
    expect([find('ebb').length, find('neap').length]).toEqual([1, 0])
    expect(errors).toEqual([expect.stringContaining('1 of its items cannot be read, or not in time')])

    isSlow = false
    await pass(INTERVAL)
    expect(find('neap')).toHaveLength(1)
  })

  it('is requested again when the service was too busy for one item', async () => {
    const pages = await site({ '/feed': rss(item(1, 'ebb')) })
    let isBusy = true
    const { pass, find } = await liveDocuments([`${pages.url}/feed`], {
      isolated: {
        ...isolated,
        readPage: (source, signal) =>
          isBusy ? Promise.reject(new IsolatedError('busy', 'later')) : isolated.readPage(source, signal),
      },
    })
    isBusy = false
    await pass(MINUTE)
    expect(find('ebb')).toHaveLength(1)
  })
})
