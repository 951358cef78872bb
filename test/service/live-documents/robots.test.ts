import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { parseRobots } from '../../../src/service/live-documents/robots.ts'
import { html, INTERVAL, liveDocuments, MINUTE, site } from './site.ts'

/** Whether a robots.txt allows a path. */
function allows(text: string, path: string): boolean {
  return parseRobots(text).isAllowed(new URL(path, 'https://example.org'))
}

const all = (...rules: readonly string[]) => ['User-agent: *', ...rules].join('\n')

describe('a robots.txt', () => {
  it.each([
    ['nothing', '', '/a', true],
    ['an empty rule', all('Disallow:'), '/a', true],
    ['a prefix', all('Disallow: /a'), '/abc', false],
    ['another prefix', all('Disallow: /a'), '/b', true],
    ['another case of a path', all('Disallow: /A'), '/a', true],
    ['everything', all('Disallow: /'), '/a', false],
    ['everything, but itself', all('Disallow: /'), '/robots.txt', true],
    ['the longest rule', all('Disallow: /a', 'Allow: /a/b'), '/a/b/c', true],
    ['the longest rule in another order', all('Allow: /a/b', 'Disallow: /a'), '/a/c', false],
    ['an equal rule that allows', all('Disallow: /a', 'Allow: /a'), '/a', true],
    ['a wildcard', all('Disallow: /*.pdf'), '/x/y.pdf?z', false],
    ['a wildcard with an end', all('Disallow: /*.pdf$'), '/x/y.pdf?z', true],
    ['a wildcard with an end that matches', all('Disallow: /*.pdf$'), '/x/y.pdf', false],
    ['an end', all('Disallow: /a$'), '/a', false],
    ['an end and more', all('Disallow: /a$'), '/ab', true],
    ['parts that overlap', all('Disallow: /ab*ba$'), '/aba', true],
    ['several wildcards', all('Disallow: /a*b*c'), '/a1b2b3c4', false],
    ['the query', all('Disallow: /*?*session='), '/a?x=1&session=2', false],
    ['a rule without a slash', all('Disallow: a'), '/a', false],
    ['percent-encoding', all('Disallow: /caf%c3%a9'), '/caf\u00e9', false],
    ['plain characters', all('Disallow: /caf\u00e9'), '/caf%C3%A9', false],
    ['unreserved characters that are encoded', all('Disallow: /%7Eanna'), '/~anna', false],
    ['reserved characters that are encoded', all('Disallow: /a%2Fb'), '/a/b', true],
    ['comments', '# all\nUser-agent: * # everyone\nDisallow: /a # not this', '/a', false],
    ['carriage returns', 'User-agent: *\r\nDisallow: /a\rAllow: /a/b', '/a/b', true],
    ['a byte order mark', '\uFEFFUser-agent: *\nDisallow: /', '/a', false],
    ['the case of names', 'USER-AGENT:RIVULET\nDISALLOW:/', '/a', false],
    [
      'its own group instead of the general one',
      `${all('Disallow: /')}\nUser-agent: Rivulet/1.0\nAllow: /`,
      '/a',
      true,
    ],
    [
      'its own group, with rules for other paths',
      `${all('Disallow: /')}\nUser-agent: rivulet\nDisallow: /b`,
      '/a',
      true,
    ],
    [
      'groups of the same name together',
      'User-agent: rivulet\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: rivulet\nDisallow: /b',
      '/b',
      false,
    ],
    ['a group of several names', 'User-agent: x\nUser-agent: rivulet\nDisallow: /', '/a', false],
    ['a group of another name', 'User-agent: rivuletbot\nDisallow: /', '/a', true],
    ['a name that begins alike', 'User-agent: river\nDisallow: /', '/a', true],
    ['rules before any group', 'Disallow: /\nUser-agent: *\nAllow: /', '/a', true],
    ['other lines within a group', all('Sitemap: https://example.org/s.xml', 'Disallow: /a'), '/a', false],
    ['lines without a colon', all('Disallow /', '<html>'), '/a', true],
  ])('is obeyed: %s', (_, text, path, expected) => {
    expect(allows(text, path)).toBe(expected)
  })

  it.each([
    ['2.5', 2.5],
    ['', undefined],
    ['-1', undefined],
    ['soon', undefined],
    ['Infinity', undefined],
  ])('states the delay %j', (value, expected) => {
    expect(parseRobots(all(`Crawl-delay: ${value}`, 'Disallow: /a')).crawlDelay).toBe(expected)
  })

  it('takes bounded time for a hostile pattern', () => {
    const hostile = Array.from({ length: 2_000 }, (_, index) => `Disallow: /${'a*'.repeat(15)}${index}$`)
    const rules = parseRobots(all(...hostile, `Disallow: /${'*a'.repeat(200_000)}`))
    const startedAt = performance.now()

    expect(rules.isAllowed(new URL(`https://example.org/${'a'.repeat(2_000)}`))).toBe(true)

    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })
})

describe('a site with a robots.txt', () => {
  const text = (body: string) => ({ type: 'text/plain', body })

  it('is not requested where it disallows it, and a page leaves the index when it is disallowed later', async () => {
    const pages = await site({ '/a': html('open'), '/b': html('closed') })
    pages.content['/robots.txt'] = text(all('Disallow: /b'))
    const { corpus, errors, pass } = await liveDocuments([`${pages.url}/a`, `${pages.url}/b`])
    expect(pages.paths()).toEqual(['/a'])
    expect(errors).toEqual([expect.stringContaining('/b cannot be read completely: robots.txt disallows it')])

    pages.content['/robots.txt'] = text(all('Disallow: /'))
    await pass(60 * MINUTE)

    expect(pages.paths()).toEqual([])
    expect(corpus.size).toBe(0)
  })

  it('is asked for the target of a redirect too', async () => {
    const pages = await site({ '/secret': html('secret') })
    pages.content['/'] = { status: 302, headers: { location: '/secret' } }
    pages.content['/robots.txt'] = text(all('Disallow: /secret'))
    const { corpus } = await liveDocuments([pages.url])

    expect(pages.paths()).toEqual(['/'])
    expect(corpus.size).toBe(0)
  })

  it.each([401, 403, 404, 410])('allows everything if its robots.txt responds with %d', async (status) => {
    const pages = await site({ '/robots.txt': { status, body: all('Disallow: /') }, '/': html('open') })
    const { corpus } = await liveDocuments([pages.url])
    expect(corpus.size).toBe(1)
  })

  it.each([429, 500, 503])(
    'is not requested for a while if its robots.txt responds with %d',
    async (status) => {
      const pages = await site({ '/robots.txt': { status }, '/': html('open') })
      const { corpus, live, pass } = await liveDocuments([pages.url])
      expect(pages.paths()).toEqual([])
      expect(live.sources()[0]?.error).toBe(`The robots.txt responded with ${status}`)

      pages.content['/robots.txt'] = text(all('Allow: /'))
      await pass(INTERVAL)

      expect(corpus.size).toBe(1)
    },
  )

  it('uses its last rules while its robots.txt cannot be read', async () => {
    const pages = await site({ '/robots.txt': text(all('Disallow: /b')), '/a': html('a'), '/b': html('b') })
    const { corpus, pass } = await liveDocuments([`${pages.url}/a`, `${pages.url}/b`])
    pages.content['/robots.txt'] = { status: 500 }
    pages.content['/a'] = html('new')
    pages.paths()

    await pass(60 * MINUTE)

    expect(pages.paths()).toEqual(['/a'])
    expect(corpus.document(`${pages.url}/a`)?.text).toBe('new')
  })

  it('reads its robots.txt once an hour', async () => {
    let count = 0
    const pages = await site({
      '/robots.txt': (_, response) => {
        count += 1
        response.writeHead(200, { 'content-type': 'text/plain' }).end(all('Allow: /'))
      },
      '/': html('open'),
    })
    const { pass } = await liveDocuments([pages.url])
    for (let round = 0; round < 3; round += 1) await pass(INTERVAL)
    expect(count).toBe(1)
    await pass(INTERVAL)
    expect(count).toBe(2)
  })

  it('does not read a robots.txt beyond 500 KiB, and no page when it is far too long', async () => {
    const long = `${all('Disallow: /a')}\n${'#'.repeat(600 * 1_024)}\nDisallow: /b`
    const pages = await site({ '/robots.txt': text(long), '/a': html('a'), '/b': html('b') })
    const first = await liveDocuments([`${pages.url}/a`, `${pages.url}/b`])
    expect(first.find('b')).toEqual([`${pages.url}/b`])

    pages.content['/robots.txt'] = text('#'.repeat(3 * 2 ** 20))
    const second = await liveDocuments([`${pages.url}/b`])
    expect(second.corpus.size).toBe(0)
  })

  it('gets one request at a time, and waits for its Crawl-delay between two', async () => {
    const clock = new ManualClock()
    const times: number[] = []
    let open = 0
    let most = 0
    const pages = await site({ '/robots.txt': text(all('Crawl-delay: 7')) })
    for (const path of ['/a', '/b', '/c']) {
      pages.content[path] = (_, response) => {
        times.push(clock.now())
        open += 1
        most = Math.max(most, open)
        response.on('close', () => (open -= 1))
        response.writeHead(200, { 'content-type': 'text/html' }).end(html(path))
      }
    }
    const urls = ['/a', '/b', '/c'].map((path) => pages.url + path)
    const { corpus } = await liveDocuments(urls, { hostDelay: 500, clock, settle: false })

    await expect
      .poll(
        () => {
          clock.advance(1_000)
          return corpus.size
        },
        { interval: 1, timeout: 10_000 },
      )
      .toBe(3)

    const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0))
    expect(waits.filter((wait) => wait < 7_000)).toEqual([])
    expect([waits.length, most]).toEqual([2, 1])
  })

  it('has the rules that its robots.txt redirects to, also on other hosts', async () => {
    const last = await site({ '/rules': text(all('Disallow: /b')) })
    const pages = await site({ '/a': html('a'), '/b': html('b') })
    const redirect = (location: string) => ({ status: 301, headers: { location } })
    pages.content['/robots.txt'] = redirect('/1')
    for (const hop of [1, 2, 3]) pages.content[`/${hop}`] = redirect(`/${hop + 1}`)
    pages.content['/4'] = redirect(`${last.url}/rules`)
    const { find, live } = await liveDocuments([`${pages.url}/a`, `${pages.url}/b`])

    expect([find('a'), find('b')]).toEqual([[`${pages.url}/a`], []])
    expect(live.sources()[1]?.last_error?.code).toBe('disallowed')
    expect(last.paths()).toEqual(['/rules'])
  })

  it('allows everything if its robots.txt redirects more than five times', async () => {
    const pages = await site({ '/robots.txt': { status: 302, headers: { location: '/robots.txt' } } })
    pages.content['/'] = html('open')
    const { corpus } = await liveDocuments([pages.url])
    expect(corpus.size).toBe(1)
  })

  it.each([0, 1])(
    'is not requested if its robots.txt redirects to a private address, after %d others',
    async (count) => {
      const inner = await site({ '/robots.txt': text(all('Allow: /')) })
      const location = `${inner.url.replace('127.0.0.1', '127.0.0.2')}/robots.txt`
      const pages = await site({ '/': html('open'), '/hop': { status: 302, headers: { location } } })
      const first = count === 0 ? location : '/hop'
      pages.content['/robots.txt'] = { status: 302, headers: { location: first } }
      const { live } = await liveDocuments([pages.url], {
        web: { isAllowed: (address) => address === '127.0.0.1' },
      })

      expect(pages.paths()).not.toContain('/')
      expect(live.sources()[0]?.last_error?.code).toBe('blocked_address')
    },
  )
})
