import { gzipSync } from 'node:zlib'
import type { Clock } from 'rivulet/service'
import { ManualClock } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../running.ts'
import { html, INTERVAL, liveDocuments, site } from './site.ts'

/** A clock that runs `speed` times as fast as another one. */
function faster(realTime: ManualClock, speed: number): Clock {
  const start = realTime.now()
  return {
    now: () => start + (realTime.now() - start) * speed,
    schedule: (delay, task) => realTime.schedule(delay / speed, task),
    realTime,
  }
}

describe('a page', () => {
  it('is a document under its URL, with its title, date and text', async () => {
    const { url } = await site({
      '/tides': html(
        'The moon pulls at the sea.',
        '<title>Tides</title><meta name="date" content="2025-03-04">',
      ),
    })
    const { corpus, live } = await liveDocuments([`${url}/tides`])

    expect(corpus.document(`${url}/tides`)).toMatchObject({
      url: `${url}/tides`,
      title: 'Tides',
      publishDate: '2025-03-04',
      text: 'The moon pulls at the sea.',
    })
    expect(live.sources()).toEqual([
      {
        url: `${url}/tides`,
        urls: 1,
        pages: 1,
        failing: 0,
        last_error: null,
        refreshed_at: '2026-01-01T00:00:00.000Z',
        error: null,
      },
    ])
  })

  it('is requested again after the interval, and not before', async () => {
    const tides = await site({ '/': html('ebb') })
    const { pass, text } = await liveDocuments([tides.url])
    tides.content['/'] = html('flood')
    tides.paths()

    await pass(INTERVAL - 1)
    expect(tides.paths()).toEqual([])
    expect(text(`${tides.url}/`)).toBe('ebb')

    await pass(1)
    expect(tides.paths()).toEqual(['/'])
    expect(text(`${tides.url}/`)).toBe('flood')
  })

  it('is requested at most once in a minute of real time by a fast clock, and robots.txt once an hour', async () => {
    const real = new ManualClock()
    const pages = await site({ '/': html('tide') })
    let robots = 0
    pages.content['/robots.txt'] = (_, response) => {
      robots += 1
      response.writeHead(404).end()
    }
    const { corpus } = await liveDocuments([`${pages.url}/`], {
      fastClock: faster(real, 3_600),
      speed: 3_600,
    })
    expect(pages.paths()).toEqual(['/'])

    for (let second = 1; second < 60; second += 1) {
      real.advance(1_000)
      await corpus.settled()
    }
    expect(pages.paths()).toEqual([])
    real.advance(1_000)
    await corpus.settled()
    expect(pages.paths()).toEqual(['/'])
    expect(robots).toBe(1)
  })

  it('is requested after an interval of less than a minute by a fast clock too, in real time', async () => {
    const real = new ManualClock()
    const pages = await site({ '/': html('tide') })
    const options = { fastClock: faster(real, 3_600), speed: 3_600, interval: 5_000 }
    const { corpus } = await liveDocuments([`${pages.url}/`], options)
    real.advance(4_000)
    await corpus.settled()
    expect(pages.paths()).toEqual(['/'])

    real.advance(1_000)
    await corpus.settled()
    expect(pages.paths()).toEqual(['/'])
  })

  it('is not requested before its max-age', async () => {
    const slow = await site({
      '/': { headers: { 'cache-control': 'public, max-age=3600' }, body: html('a') },
    })
    const { pass } = await liveDocuments([slow.url])
    slow.paths()

    await pass(3_600_000 - 1)
    expect(slow.paths()).toEqual([])
    await pass(1)
    expect(slow.paths()).toEqual(['/'])
  })

  it('may be Markdown or plain text', async () => {
    const { url } = await site({
      '/a.md': { type: 'text/markdown', body: '# Tides\n\nThe *moon*.' },
      '/a.txt': { type: 'text/plain; charset=utf-8', body: 'The sun.' },
    })
    const { corpus } = await liveDocuments([`${url}/a.md`, `${url}/a.txt`])

    expect(corpus.document(`${url}/a.md`)).toMatchObject({ title: 'Tides', text: '# Tides\n\nThe *moon*.' })
    expect(corpus.document(`${url}/a.txt`)).toMatchObject({ title: 'a.txt', text: 'The sun.' })
  })

  it.each([
    ['its content type', 'text/html; charset=iso-8859-1', 'caf\u00e9', 'latin1'],
    ['its meta element', 'text/html', '<meta charset=windows-1252>caf\u00e9', 'latin1'],
    ['its byte order mark', 'text/html', '\uFEFFcaf\u00e9', 'utf16le'],
  ] as const)('is decoded by %s', async (_, type, body, encoding) => {
    const { url } = await site({ '/': { type, body: Buffer.from(body, encoding) } })
    const { text } = await liveDocuments([url])
    expect(text(`${url}/`)).toBe('caf\u00e9')
  })

  it('has the canonical URL that it states, on the same host only', async () => {
    const { url } = await site({
      '/a?session=1': html('first', `<link rel=canonical href="/a">`),
      '/b': html('second', '<link rel=canonical href="https://bank.example/">'),
    })
    const { corpus, find } = await liveDocuments([`${url}/a?session=1`, `${url}/b`])

    expect(find('first')).toEqual([`${url}/a`])
    expect(find('second')).toEqual([`${url}/b`])
    expect(corpus.document('https://bank.example/')).toBeUndefined()
  })

  it('is one document under two URLs with the same canonical URL', async () => {
    const body = html('twice', '<link rel=canonical href="/a">')
    const { url } = await site({ '/a': body, '/a?from=mail': body })
    const { corpus, find } = await liveDocuments([`${url}/a`, `${url}/a?from=mail`])

    expect([corpus.size, find('twice')]).toEqual([1, [`${url}/a`]])
  })

  it.each([
    ['a meta element', html('secret', '<meta name=robots content="noindex, follow">')],
    ['a meta element with none', html('secret', '<META NAME="Robots" CONTENT="NONE">')],
    ['a header', { headers: { 'x-robots-tag': 'rivulet: noindex' }, body: html('secret') }],
  ])('is not in the index when the site excludes it by %s', async (_, content) => {
    const excluding = await site({ '/': html('public') })
    const { corpus, pass, live } = await liveDocuments([excluding.url])
    expect(corpus.size).toBe(1)

    excluding.content['/'] = content
    await pass(INTERVAL)

    expect(corpus.size).toBe(0)
    expect(live.sources()[0]?.error).toBe('noindex')

    excluding.content['/'] = html('public')
    await pass(INTERVAL)
    expect(corpus.size).toBe(1)
  })
})

describe('an unchanged page', () => {
  it('is requested with its ETag and date, and a 304 changes nothing', async () => {
    const date = 'Thu, 01 Jan 2026 00:00:00 GMT'
    const pages = await site()
    pages.content['/'] = (request, response) => {
      const isKnown = request.headers['if-none-match'] === 'W/"1"'
      if (isKnown) response.writeHead(304, { 'content-encoding': 'gzip' }).end()
      else {
        const headers = { 'content-type': 'text/html', etag: 'W/"1"', 'last-modified': date }
        response.writeHead(200, { ...headers, 'content-encoding': 'gzip' }).end(gzipSync(html('same')))
      }
    }
    const { corpus, pass, live, text } = await liveDocuments([pages.url])
    let changes = 0
    corpus.onChange(() => (changes += 1))

    await pass(INTERVAL)
    await pass(INTERVAL)

    expect(pages.requests.map(({ headers }) => headers['if-none-match'])).toEqual([
      undefined,
      'W/"1"',
      'W/"1"',
    ])
    expect(pages.requests[2]?.headers['if-modified-since']).toBe(date)
    expect([changes, text(`${pages.url}/`)]).toEqual([0, 'same'])
    expect(live.sources()[0]).toMatchObject({ error: null, refreshed_at: '2026-01-01T00:30:00.000Z' })
  })

  it('does not change by another ETag for the same bytes', async () => {
    const pages = await site()
    let version = 0
    pages.content['/'] = (_, response) => {
      version += 1
      response.writeHead(200, { 'content-type': 'text/html', etag: `"${version}"` }).end(html('same'))
    }
    const { corpus, pass } = await liveDocuments([pages.url])
    let changes = 0
    corpus.onChange(() => (changes += 1))

    await pass(INTERVAL)
    await pass(INTERVAL)

    expect(changes).toBe(0)
    // The latest one is sent.
    expect(pages.requests.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"1"', '"2"'])
  })

  it('is a failure with a 304 that nothing asked for', async () => {
    const { url } = await site({ '/': { status: 304 } })
    const { corpus, live } = await liveDocuments([url])
    expect([corpus.size, live.sources()[0]?.error]).toEqual([0, 'The server responded with 304'])
  })
})

describe('a page that vanishes', () => {
  it.each([404, 410])('leaves the index after the second %d, and comes back', async (status) => {
    const pages = await site({ '/': html('here') })
    const { corpus, pass } = await liveDocuments([pages.url])

    pages.content['/'] = { status }
    await pass(INTERVAL)
    expect(corpus.size).toBe(1)
    await pass(INTERVAL)
    expect(corpus.size).toBe(0)

    pages.content['/'] = html('here')
    await pass(2 * INTERVAL)
    expect(corpus.size).toBe(1)
  })

  it('stays after a 404 that is followed by the page', async () => {
    const pages = await site({ '/': html('here') })
    const { corpus, pass } = await liveDocuments([pages.url])
    const steps = [{ status: 404 }, html('here'), { status: 404 }, html('here')]
    for (const step of steps) {
      pages.content['/'] = step
      await pass(INTERVAL)
      expect(corpus.size).toBe(1)
    }
  })
})

describe('a restart', () => {
  it('keeps the pages, and asks for what changed only when it is due', async () => {
    const file = `${await temporaryFolder()}/data.db`
    const pages = await site({ '/': { headers: { etag: '"1"' }, body: html('kept') } })
    const first = await liveDocuments([pages.url], { file })
    await first.close()
    pages.paths()

    const second = await liveDocuments([pages.url], { file, clock: first.clock })
    expect(second.text(`${pages.url}/`)).toBe('kept')
    expect(pages.paths()).toEqual([])

    await second.pass(INTERVAL)
    expect(pages.requests.map(({ headers }) => headers['if-none-match'])).toEqual(['"1"'])
  })

  it('without a source removes its pages', async () => {
    const file = `${await temporaryFolder()}/data.db`
    const pages = await site({ '/a': html('first'), '/b': html('second') })
    const first = await liveDocuments([`${pages.url}/a`, `${pages.url}/b`], { file })
    expect(first.corpus.size).toBe(2)
    await first.close()

    const second = await liveDocuments([`${pages.url}/b`], { file, clock: first.clock })
    expect([second.corpus.size, second.text(`${pages.url}/a`)]).toEqual([1, undefined])
  })

  it('downloads the pages again when the index was rebuilt', async () => {
    const file = `${await temporaryFolder()}/data.db`
    const pages = await site({
      '/': (request, response) => {
        if (request.headers['if-none-match'] === '"1"') response.writeHead(304).end()
        else response.writeHead(200, { 'content-type': 'text/html', etag: '"1"' }).end(html('again'))
      },
    })
    const first = await liveDocuments([pages.url], { file })
    // As with the index of an older version.
    first.database.exec('UPDATE corpus_layout SET version = 0')
    await first.close()

    const second = await liveDocuments([pages.url], { file, clock: first.clock })
    expect(second.text(`${pages.url}/`)).toBe('again')
  })
})
