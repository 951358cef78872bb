import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { IsolatedError, type IsolatedErrorKind } from '../../../src/service/isolated/isolated-error.ts'
import { html, INTERVAL, isolated, liveDocuments, MINUTE, site, sitemap, xml } from './site.ts'

const BOMB = '<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'

describe('a page that fails', () => {
  it.each([
    ['a status of 500', { status: 500, body: html('broken') }, 'The server responded with 500'],
    ['a status of 403', { status: 403 }, 'The server responded with 403'],
    ['another media type', { type: 'image/png', body: 'png' }, 'The response has the content type image/png'],
    ['no text', html(''), 'The page has no text'],
    [
      'a page that is too large',
      html('x'.repeat(11 * 2 ** 20)),
      'The response is longer than 10485760 bytes',
    ],
    [
      'a gzip bomb',
      { headers: { 'content-encoding': 'gzip' }, body: gzipSync('x'.repeat(50 * 2 ** 20)) },
      'The response is longer than 10485760 bytes',
    ],
    [
      'a broken gzip file',
      { type: 'application/gzip', body: new Uint8Array([0x1f, 0x8b, 1, 2, 3]) },
      'The compressed body is broken',
    ],
    [
      'a gzip bomb as a file',
      { type: 'application/gzip', body: gzipSync('x'.repeat(50 * 2 ** 20)) },
      'The decompressed body is longer than 10485760 bytes',
    ],
  ])('keeps its last copy: %s', async (_, content, error) => {
    const pages = await site({ '/': html('good') })
    const { corpus, pass, text, live, errors } = await liveDocuments([`${pages.url}/`])

    pages.content['/'] = content
    await pass(INTERVAL)
    await pass(2 * INTERVAL)

    expect([corpus.size, text(`${pages.url}/`)]).toEqual([1, 'good'])
    expect(live.sources()[0]?.error).toBe(error)
    // Once, and not for each request.
    expect(errors).toHaveLength(1)
  })

  it('keeps its last copy: a body that is cut', async () => {
    const pages = await site({ '/': html('good') })
    const { pass, text, live } = await liveDocuments([`${pages.url}/`])
    pages.content['/'] = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html', 'content-length': '1000' })
      response.write('<p>half', () => response.destroy())
    }
    await pass(INTERVAL)

    expect(text(`${pages.url}/`)).toBe('good')
    expect(live.sources()[0]?.error).toMatch(/The request failed/)
  })

  it('does not delay the pages of other hosts, and is aborted when the service is closed', async () => {
    const stalled = await site({
      '/': (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).flushHeaders(),
    })
    const pages = await site({ '/': html('quick') })
    const { corpus, close } = await liveDocuments([stalled.url, pages.url], { settle: false })

    await expect.poll(() => corpus.size, { interval: 2, timeout: 10_000 }).toBe(1)
    await close()

    expect(stalled.requests).toHaveLength(1)
  })

  it('is waited for 10 s before the documents are settled', async () => {
    const stalled = await site({
      '/': (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).flushHeaders(),
    })
    const { corpus, clock } = await liveDocuments([stalled.url], { settle: false })
    let isSettled = false
    const settled = corpus.settled().then(() => (isSettled = true))
    await expect.poll(() => stalled.requests.length, { interval: 2, timeout: 10_000 }).toBe(1)

    clock.advance(9_999)
    await new Promise((resolve) => void setImmediate(resolve))
    expect(isSettled).toBe(false)

    clock.advance(1)
    await settled
    expect(isSettled).toBe(true)
  })

  it('is requested less often after each failure', async () => {
    const pages = await site({ '/': { status: 403 } })
    const { pass } = await liveDocuments([pages.url])
    const counts: number[] = []
    for (let round = 0; round < 7; round += 1) {
      pages.paths()
      await pass(INTERVAL)
      counts.push(pages.requests.length)
    }
    expect(counts).toEqual([1, 0, 1, 0, 0, 0, 1])
  })

  it('is not requested before its Retry-After, nor are other pages of its host', async () => {
    const pages = await site({ '/a': { status: 503, headers: { 'retry-after': '1800' } }, '/b': html('b') })
    const { pass, corpus } = await liveDocuments([`${pages.url}/a`, `${pages.url}/b`])
    expect(pages.paths()).toEqual(['/a'])
    pages.content['/a'] = html('a')

    await pass(30 * MINUTE - 1)
    expect(pages.paths()).toEqual([])
    await pass(1)

    expect(corpus.size).toBe(2)
  })

  it('is not requested before a Retry-After that is longer than its host pauses', async () => {
    const pages = await site({ '/a': { status: 503, headers: { 'retry-after': '7200' } }, '/b': html('b') })
    const { pass } = await liveDocuments([`${pages.url}/a`, `${pages.url}/b`])
    expect(pages.paths()).toEqual(['/a'])

    await pass(60 * MINUTE)
    expect(pages.paths()).toEqual(['/b'])
    await pass(60 * MINUTE)

    expect(pages.paths()).toContain('/a')
  })

  it('pauses its host after several failures, which are then requested one after another', async () => {
    const content = Object.fromEntries(
      Array.from({ length: 9 }, (_, index) => [`/${index}`, { status: 500 }]),
    )
    const pages = await site(content)
    await liveDocuments(Object.keys(content).map((path) => pages.url + path))
    expect(pages.requests).toHaveLength(3)
  })
})

describe('a page that the service could not read', () => {
  it.each<[IsolatedErrorKind]>([['busy'], ['crash'], ['closed']])(
    'is requested again after a minute, and keeps its copy and its record: %s',
    async (kind) => {
      let isFailing = false
      const pages = await site({ '/': html('good') })
      const { pass, text, live, errors } = await liveDocuments([pages.url], {
        isolated: {
          ...isolated,
          readPage: (source, signal) =>
            isFailing
              ? Promise.reject(new IsolatedError(kind, 'no page is read'))
              : isolated.readPage(source, signal),
        },
      })
      pages.content['/'] = html('new')
      isFailing = true
      pages.paths()
      await pass(INTERVAL)
      for (let count = 0; count < 5; count += 1) await pass(MINUTE)

      expect(text(`${pages.url}/`)).toBe('good')
      expect(pages.paths()).toHaveLength(6)
      expect(live.sources()[0]?.error).toContain('no page is read')
      expect(errors).toHaveLength(1)

      isFailing = false
      await pass(MINUTE)

      expect(text(`${pages.url}/`)).toBe('new')
      expect(live.sources()[0]?.error).toBeNull()
      // No failure of the page was counted: the next one is the first.
      pages.content['/'] = { status: 403 }
      await pass(INTERVAL)
      pages.paths()
      await pass(INTERVAL)
      expect(pages.paths()).toEqual(['/'])
    },
  )
})

describe('a redirect', () => {
  it('of a source may lead to another host', async () => {
    const target = await site({ '/': html('moved') })
    const pages = await site({ '/': { status: 301, headers: { location: target.url } } })
    const { find } = await liveDocuments([pages.url])
    expect(find('moved')).toEqual([`${target.url}/`])
  })

  it('of a page may not leave the host of its sitemap', async () => {
    const target = await site({ '/': html('moved') })
    const pages = await site({ '/b': html('stays') })
    pages.content['/a'] = { status: 302, headers: { location: target.url } }
    pages.content['/c'] = { status: 302, headers: { location: '/b' } }
    pages.content['/s.xml'] = sitemap(`${pages.url}/a`, `${pages.url}/c`)
    const { corpus, find } = await liveDocuments([`${pages.url}/s.xml`])

    expect(target.requests).toEqual([])
    expect([corpus.size, find('stays')]).toEqual([1, [`${pages.url}/b`]])
  })

  it('of a source to a private address is refused', async () => {
    const inner = await site({ '/': html('secret') })
    const outer = await site({
      '/': { status: 302, headers: { location: inner.url.replace('127.0.0.1', '127.0.0.2') } },
    })
    const { corpus, errors } = await liveDocuments([outer.url], {
      web: { isAllowed: (address) => address === '127.0.0.1' },
    })

    expect([corpus.size, inner.requests]).toEqual([0, []])
    expect(errors).toEqual([expect.stringContaining('not an address of the public Internet')])
  })

  it('is refused for a name that resolves to a private address', async () => {
    const inner = await site({ '/': html('secret') })
    const { errors } = await liveDocuments([`http://intranet.example:${new URL(inner.url).port}/`], {
      web: { resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]) },
    })
    expect(inner.requests).toEqual([])
    expect(errors).toEqual([expect.stringContaining('not an address of the public Internet')])
  })

  it('that never ends is a failure', async () => {
    const pages = await site({ '/': { status: 302, headers: { location: '/' } } })
    const { live } = await liveDocuments([pages.url])
    expect(live.sources()[0]?.error).toBe('More than 5 redirects')
  })
})

describe('a hostile listing', () => {
  it.each([
    [
      'entities in a sitemap',
      `${BOMB}<urlset><url><loc>/&b;</loc></url></urlset>`,
      'The XML declares entities',
    ],
    ['entities in a feed', `${BOMB}<rss><item><title>&b;</title></item></rss>`, 'The XML declares entities'],
    [
      'an external entity',
      '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss><item><title>&x;</title></item></rss>',
      'The XML declares entities',
    ],
    ['great depth', `<rss>${'<item>'.repeat(100_000)}`, 'The XML has more than 64 levels'],
    [
      'a huge number of elements',
      `<rss>${'<x/>'.repeat(1_000_001)}</rss>`,
      'The XML has more than 64 levels',
    ],
  ])('is refused, and pages stay: %s', async (_, body, error) => {
    const pages = await site({ '/a': html('good') })
    pages.content['/s.xml'] = sitemap(`${pages.url}/a`)
    const { corpus, pass, live } = await liveDocuments([`${pages.url}/s.xml`])

    pages.content['/s.xml'] = xml(body)
    await pass(INTERVAL)

    expect(corpus.size).toBe(1)
    expect(live.sources()[0]?.error).toContain(error)
  })

  it('is read by the isolated thread, and postponed while that is busy', async () => {
    const pages = await site({ '/a': html('good') })
    pages.content['/s.xml'] = sitemap(`${pages.url}/a`)
    let isBusy = true
    const { corpus, pass } = await liveDocuments([`${pages.url}/s.xml`], {
      isolated: {
        ...isolated,
        readListing: (source, signal) =>
          isBusy ? Promise.reject(new IsolatedError('busy', 'later')) : isolated.readListing(source, signal),
      },
    })
    expect(corpus.size).toBe(0)
    isBusy = false
    await pass(MINUTE)
    expect(corpus.size).toBe(1)
  })

  it('that takes too long is a failure', async () => {
    const pages = await site({ '/s.xml': sitemap('/a') })
    const { live } = await liveDocuments([`${pages.url}/s.xml`], {
      isolated: {
        ...isolated,
        readListing: () => Promise.reject(new IsolatedError('timeout', 'too long')),
      },
    })
    expect(live.sources()[0]?.error).toBe('The sitemap or feed cannot be read (timeout)')
  })

  it('expands only predefined and numeric entities', async () => {
    const pages = await site({
      '/feed': xml(
        '<rss><item><guid>1</guid><title>&lt;&#65;&unknown;&eacute;</title><description>text</description></item></rss>',
      ),
    })
    const { corpus, find } = await liveDocuments([`${pages.url}/feed`])
    expect(corpus.document(find('text')[0] ?? '')?.title).toBe('<A&unknown;&eacute;')
  })

  it('is no page of a sitemap', async () => {
    const pages = await site({
      '/feed': xml('<rss><item><link>/a</link></item></rss>'),
      '/a': html('not listed'),
    })
    pages.content['/s.xml'] = sitemap(`${pages.url}/feed`)
    const { corpus } = await liveDocuments([`${pages.url}/s.xml`])
    expect([corpus.size, pages.paths()]).toEqual([0, ['/s.xml', '/feed']])
  })

  it('is JSON or XML of another kind: an error that says so', async () => {
    const pages = await site({
      '/x': xml('<note>x</note>'),
      '/s.xml': xml('<sitemapindex><sitemap><loc>/page</loc></sitemap></sitemapindex>'),
      '/page': html('x'),
    })
    const { live, errors } = await liveDocuments([`${pages.url}/x`, `${pages.url}/s.xml`])
    expect(live.sources()[0]?.error).toBe('It is no sitemap, feed or page')
    expect(errors.filter((error) => error.includes('/page'))).toHaveLength(1)
  })
})

it('reads HTML of great depth without an overflow', async () => {
  const pages = await site({ '/': `<p>shallow</p>${'<div>'.repeat(100_000)}deep` })
  const { find } = await liveDocuments([pages.url])
  expect(find('shallow')).toEqual([`${pages.url}/`])
})

it('shows no query of a URL in its errors', async () => {
  const pages = await site({ '/feed?token=hunter2': { status: 500 } })
  const { errors } = await liveDocuments([`${pages.url}/feed?token=hunter2`])
  expect(errors).toEqual([
    `The source ${pages.url}/feed?… cannot be read completely: The server responded with 500`,
  ])
})

it('shows no query of a source in its state, nor in the URLs of the items of a feed', async () => {
  const feed =
    '<rss><channel><item><guid>1</guid><title>News</title><description>The tide turns</description></item></channel></rss>'
  const pages = await site({ '/feed?token=hunter2': xml(feed) })
  const { live, find } = await liveDocuments([`${pages.url}/feed?token=hunter2`])

  expect(live.sources()).toMatchObject([{ url: `${pages.url}/feed?…`, urls: 2, error: null }])
  expect(find('tide')).toEqual([expect.stringMatching(/\/feed#[0-9a-f]{24}$/)])
})
