import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { RequestListener } from 'node:http'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import type { ExtractRequest, ExtractResponse } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createExtract } from '../../src/service/extract/extract.ts'
import { sendResponses } from '../../src/service/http/json-response.ts'
import { createIsolated } from '../../src/service/isolated/isolated.ts'
import { createWeb } from '../../src/service/web/safe-fetch.ts'
import { folderOf } from '../service/corpus/folder.ts'
import { serve } from '../support/serve.ts'
import { research } from './research.ts'

const SPRING = 'https://tides.example.edu/spring.md'
const files = {
  'tides.example.edu/spring.md': [
    '---\ndate: 2025-06-01\n---\n',
    '# Spring tides\n',
    'A spring tide comes at new and full moon, when the moon and the sun pull in one line.\n',
    ...Array.from({ length: 30 }, (_, index) => `Paragraph ${index} has ${'some words '.repeat(40)}\n`),
    '## Ferries\n',
    `The ferry waits for the flood. ${'It is slow. '.repeat(30)}\n`,
  ].join('\n'),
}

const HTML = `<!doctype html><html><head><title>A harbour</title><meta name="date" content="2024-02-03">
<style>p { color: red }</style></head><body><nav><a href="/">Home</a></nav><h1>The harbour</h1>
<p>Boats <b>sleep</b> at the <a href="pier?a=1&amp;b=2">pier</a> &lt;here&gt;. <a href="javascript:alert(1)">Never</a></p>
<ul><li>one</li><li>two</li></ul><table><tr><th>A</th><th>B</th></tr><tr><td>1|2</td><td>3</td></tr></table>
<pre><code class="language-js">const a = 1</code></pre><script>document.write('script')</script></body></html>`

const html = { 'content-type': 'text/html; charset=utf-8' }

/** A service that may reach this machine, and a site on this machine. */
async function scene(listener: RequestListener) {
  const site = await serve(listener)
  const { client, service, clock, docs } = await research({ files, allowPrivateAddresses: true })
  const full = (...urls: string[]) => client.extract({ urls, advanced_settings: { full_content: true } })
  return { site, client, service, clock, docs, full }
}

const types = ({ results, errors }: ExtractResponse) => [
  ...results.map(({ url }) => [url, 'result']),
  ...errors.map(({ url, error_type }) => [url, error_type]),
]

describe('the extraction of a document of the index', () => {
  it('warns of the words that it leaves out', async () => {
    const { client } = await research({ files })
    const words = (from: number) => Array.from({ length: 40 }, (_, i) => `common${from + i}`).join(' ')

    const some = await client.extract({ urls: [SPRING], search_queries: [words(0)] })
    const many = await client.extract({ urls: [SPRING], search_queries: [words(0)], objective: words(40) })

    expect(some.warnings).toBeNull()
    expect(many.warnings).toEqual([
      {
        type: 'warning',
        message: expect.stringMatching(/more than 64 different words.*without 16 others/),
        detail: { parameter: 'search_queries', unused: expect.any(Array) },
      },
    ])
  })

  it('has the excerpts that match, and no full content unless it is requested', async () => {
    const { client } = await research({ files })

    const request: ExtractRequest = { urls: [SPRING], search_queries: ['ferry'], session_id: 'session_1' }
    const answer = await client.extract(request)

    expect(answer).toMatchObject({
      extract_id: expect.stringMatching(/^extract_/),
      session_id: 'session_1',
      errors: [],
      warnings: null,
      usage: [{ name: 'extract', count: 1 }],
    })
    const [result] = answer.results
    expect(result).toMatchObject({ url: SPRING, title: 'Spring tides', publish_date: '2025-06-01' })
    expect(result?.excerpts[0]).toContain('The ferry waits for the flood')
    expect(result?.excerpts.join('\n')).not.toContain('A spring tide comes')
    expect(result).not.toHaveProperty('full_content')
  })

  it('begins at the beginning without an objective, and has the whole text where it is requested', async () => {
    const { client, docs } = await research({ files })

    const advanced_settings = { full_content: true, excerpt_settings: { max_chars_per_result: 1_500 } }
    const { results } = await client.extract({ urls: [SPRING], advanced_settings })

    const text = await readFile(join(docs, 'tides.example.edu/spring.md'), 'utf8')
    expect(results[0]?.full_content).toBe(text.split('---\n')[2]?.trim())
    expect(results[0]?.excerpts[0]).toMatch(/^# Spring tides/)
    expect(results[0]?.excerpts.join('').length).toBeLessThanOrEqual(1_500)
  })

  it('respects the limits of characters, and raises those that are too low with a warning', async () => {
    const { client } = await research({ files })

    const { results, warnings } = await client.extract({
      urls: [SPRING],
      max_chars_total: 5,
      advanced_settings: {
        excerpt_settings: { max_chars_per_result: 7 },
        full_content: { max_chars_per_result: 9 },
      },
    })

    expect(results[0]?.excerpts.join('').length).toBeLessThanOrEqual(1_000)
    expect(results[0]?.full_content).toHaveLength(1_000)
    expect(warnings?.map(({ detail }) => detail?.['parameter'] ?? detail?.['url'])).toEqual([
      'max_chars_per_result',
      'max_chars_total',
      'full_content.max_chars_per_result',
      SPRING,
    ])
  })

  it('finds documents by a file URL only if the index has them, and reads no other file', async () => {
    const { client, service } = await research({
      files: {
        'notes.md': '# Notes\n\nOf the day.',
        'unlisted.json': '{}',
        '.hidden/secret.md': '# Secret',
      },
    })
    const [hit] = (await client.search({ search_queries: ['notes'] })).results
    const url = hit?.url ?? ''
    const folder = url.replace('notes.md', '')

    const outside = [
      'file:///etc/passwd',
      'file://localhost/etc/passwd',
      'file:///etc/./passwd#fragment',
      'file:///\\..\\etc\\passwd',
      `${folder}x/../../../etc/passwd`,
      `${folder}%2e%2e/%2e%2e/etc/passwd`,
      `${folder}..%2f..%2fetc%2fpasswd`,
      `${folder}%252e%252e/%252e%252e/etc/passwd`,
      `${folder}..\\..\\etc\\passwd`,
      `${url}%00/../../etc/passwd`,
      `${url}/../unlisted.json`,
      `${folder}.hidden/secret.md`,
    ]
    const answer = await client.extract({ urls: [url, ...outside] })

    expect(service.corpus.size).toBe(1)
    expect(types(answer)).toEqual([[url, 'result'], ...outside.map((other) => [other, 'invalid_url'])])
  })

  it('reads nothing through a symbolic link out of its folder', async () => {
    const elsewhere = await folderOf({ 'secret.md': '# Secret\n\nNot for readers.' })
    const { client, service, docs } = await research({ files: { 'notes.md': '# Notes' } })
    await symlink(elsewhere, join(docs, 'linked'))
    await symlink(join(elsewhere, 'secret.md'), join(docs, 'secret.md'))
    await service.corpus.settled()
    const urls = ['secret.md', 'linked/secret.md'].map((path) => pathToFileURL(join(docs, path)).href)

    const answer = await client.extract({ urls: [...urls, pathToFileURL(join(elsewhere, 'secret.md')).href] })

    expect(answer.results).toEqual([])
    expect(answer.errors.map(({ error_type }) => error_type)).toEqual(Array(3).fill('invalid_url'))
    expect(JSON.stringify(answer)).not.toContain('Not for readers')
  })

  it('does not take the path of a URL as a path of a file', async () => {
    const { client } = await research({ files })
    const urls = [
      '../',
      '..%2f..%2fetc/passwd',
      'spring.md/../../spring.md',
      "spring.md' OR 1=1 --",
      'spring.md%00',
    ]

    const answer = await client.extract({
      urls: urls.map((path) => `http://127.0.0.1:8080/tides.example.edu/${path}`),
    })

    expect(answer.results).toEqual([])
    expect(answer.errors.map(({ error_type }) => error_type)).toEqual(urls.map(() => 'blocked_address'))
  })
})

describe('the extraction of a page', () => {
  it('has its HTML as Markdown, with its title and date', async () => {
    const { site, full } = await scene((_, response) => response.writeHead(200, html).end(HTML))

    const { results } = await full(`${site}/dir/page`)

    expect(results).toEqual([
      {
        url: `${site}/dir/page`,
        title: 'A harbour',
        publish_date: '2024-02-03',
        excerpts: [expect.stringContaining('Boats')],
        full_content: expect.any(String),
      },
    ])
    const content = results[0]?.full_content
    expect(content).toContain('# The harbour')
    expect(content).toContain(`Boats **sleep** at the [pier](${site}/dir/pier?a=1&b=2)`)
    expect(content).toMatch(/\\?<here>/)
    expect(content).toContain('- one\n- two')
    expect(content).toContain('| 1\\|2 | 3 |')
    expect(content).toContain('```js\nconst a = 1\n```')
    expect(content).not.toMatch(/Home|document\.write|color: red|javascript:/)
  })

  it('selects the excerpts for the objective', async () => {
    const paragraphs = Array.from({ length: 50 }, (_, index) => `<p>${`word${index} `.repeat(90)}</p>`)
    const { site, client } = await scene((_, response) =>
      response.writeHead(200, html).end(paragraphs.join('')),
    )

    const { results } = await client.extract({ urls: [site], objective: 'Which words are word33?' })

    expect(results[0]?.excerpts[0]).toContain('word33')
    expect(results[0]?.excerpts.join('')).not.toContain('word10 ')
  })

  it.each([
    ['the header', 'text/plain; charset=shift_jis', Buffer.from([0x93, 0xfa, 0x96, 0x7b]), '日本'],
    [
      'the meta element',
      'text/html',
      Buffer.from('<meta charset="windows-1252"><p>5 \x80 \xe9</p>', 'latin1'),
      '5 € é',
    ],
    ['a byte order mark', 'text/plain; charset=ascii', Buffer.from('\ufeffé', 'utf16le'), 'é'],
    ['nothing', 'text/plain', Buffer.from('5 \x80', 'latin1'), '5 €'],
    ['an unknown name', 'text/plain; charset=x-none', Buffer.from('日本'), '日本'],
  ])('decodes a text by %s', async (_, type, body, expected) => {
    const { site, full } = await scene((__, response) =>
      response.writeHead(200, { 'content-type': type }).end(body),
    )

    const { results } = await full(site)

    expect(results[0]?.full_content).toBe(expected)
  })

  it('has each URL exactly once, in the order of the request, with the reason of each failure', async () => {
    const { site, client } = await scene(({ url }, response) => {
      if (url === '/ok' || url === '/first')
        response.writeHead(200, { 'content-type': 'text/markdown' }).end('# Fine')
      else if (url === '/moved') response.writeHead(302, { location: '/ok' }).end()
      else if (url === '/loop') response.writeHead(302, { location: '/loop' }).end()
      else if (url === '/gone') response.writeHead(410, { 'content-type': 'text/plain' }).end('long gone')
      else if (url === '/bytes') response.writeHead(200, { 'content-type': 'application/pdf' }).end('x')
      else if (url === '/huge')
        response
          .writeHead(200, { ...html, 'content-encoding': 'gzip' })
          .end(gzipSync(Buffer.alloc(2 ** 23, 32)))
      else if (url === '/cut')
        response.writeHead(200, { 'content-length': 9, ...html }).write('x', () => response.destroy())
      else if (url === '/slow') response.writeHead(200, html).write('x')
    })
    const paths = ['gone', 'ok', 'slow', 'moved', 'loop', 'bytes', 'huge', 'cut', 'ok#part']
    const urls = [...paths.map((path) => `${site}/${path}`), 'http://u.invalid:25/', `${site}/ok`, SPRING]
    // Starts the isolated thread, which may take a busy machine longer than the 5 s below.
    await client.extract({
      urls: [`${site}/first`],
      advanced_settings: { fetch_policy: { timeout_seconds: 60 } },
    })

    const answer = await client.extract({
      urls,
      advanced_settings: { fetch_policy: { timeout_seconds: 5 } },
    })

    const kinds = { gone: 'http_error', slow: 'timeout', loop: 'too_many_redirects', huge: 'too_large' }
    const others = { bytes: 'unsupported_content_type', cut: 'fetch_error' }
    expect(types(answer)).toEqual([
      ...['ok', 'moved', 'ok#part'].map((path) => [`${site}/${path}`, 'result']),
      [SPRING, 'result'],
      ...['gone', 'slow', 'loop', 'bytes', 'huge', 'cut'].map((path) => [
        `${site}/${path}`,
        Object.entries({ ...kinds, ...others }).find(([name]) => name === path)?.[1],
      ]),
      ['http://u.invalid:25/', 'invalid_url'],
    ])
    expect(answer.errors[0]).toMatchObject({ http_status_code: 410, content: 'long gone' })
    expect(answer.usage).toEqual([{ name: 'extract', count: 4 }])
  })

  it('is refused at an address of this machine by default', async () => {
    let requests = 0
    const site = await serve((_, response) => {
      requests += 1
      response.end()
    })
    const { client } = await research()

    const { errors } = await client.extract({ urls: [site, site.replace('127.0.0.1', '[::ffff:7f00:1]')] })

    expect(errors.map(({ error_type, http_status_code }) => [error_type, http_status_code])).toEqual([
      ['blocked_address', null],
      ['blocked_address', null],
    ])
    expect(requests).toBe(0)
  })

  it('is refused at an address that a redirect or the name of a host leads to', async () => {
    let requests = 0
    const other = await serve((_, response) => {
      requests += 1
      response.end()
    })
    const site = await serve((_, response) =>
      response.writeHead(302, { location: other.replace('127.0.0.1', 'inside.example') }).end(),
    )
    const { service, clock } = await research()
    // One address of this machine is as one of the Internet, and the private address of the host is on this machine too.
    const isAllowed = (address: string) => address === '127.0.0.1'
    const web = createWeb({ isAllowed, resolve: async () => [{ address: '127.0.0.2', family: 4 }] })
    onTestFinished(() => web.close())
    const isolated = createIsolated()
    onTestFinished(() => isolated.close())
    const { routes } = createExtract({ corpus: service.corpus, web, isolated, clock })
    const app = new Hono<{ Bindings: HttpBindings }>().use(sendResponses()).route('/', routes)
    const url = await serve(getRequestListener(app.fetch))

    const urls = [site, other.replace('127.0.0.1', 'inside.example')]
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${url}/v1/extract`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ urls }),
    })
    const body: ExtractResponse = await response.json()

    expect(types(body)).toEqual(urls.map((each) => [each, 'blocked_address']))
    expect(requests).toBe(0)
  })

  it('survives hostile HTML', async () => {
    const bodies = [
      '<div>'.repeat(100_000),
      '<b><i><p>'.repeat(50_000),
      `<p>${'&lt;'.repeat(200_000)}`,
      `<p>${'&amp;amp;'.repeat(100_000)}`,
      '<!--'.repeat(200_000),
      `<a ${'x=1 '.repeat(100_000)}>`,
      '<'.repeat(300_000),
      `${'<ul><li>'.repeat(10_000)}x`,
      '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><p>&b;</p>',
    ]
    // Its conversion takes quadratic time.
    const endless = `${'<blockquote>'.repeat(390)}${'a<br>'.repeat(10_000)}`
    const { site, client } = await scene(({ url }, response) =>
      response.writeHead(200, html).end(bodies[Number(url?.slice(1))] ?? endless),
    )
    const urls = bodies.map((_, index) => `${site}/${index}`)

    const answer = await client.extract({
      urls: [...urls, `${site}/endless`],
      advanced_settings: { fetch_policy: { timeout_seconds: 60 } },
    })

    expect(answer.results.map(({ url }) => url)).toEqual(urls)
    expect(answer.errors).toEqual([
      {
        url: `${site}/endless`,
        error_type: 'timeout',
        http_status_code: null,
        content: 'The page could not be converted to Markdown. It takes longer than 3000 ms',
      },
    ])
  }, 60_000)

  it('keeps pages for ten minutes, and uses an older one when the page fails, unless that is disabled', async () => {
    let status = 200
    let requests = 0
    const { site, client, clock } = await scene((_, response) => {
      requests += 1
      response.writeHead(status, { 'content-type': 'text/plain' }).end(`text ${requests}`)
    })
    const extract = async (
      fetch_policy: { max_age_seconds?: number; disable_cache_fallback?: boolean } = {},
    ) => {
      const { results, errors, warnings } = await client.extract({
        urls: [site],
        advanced_settings: { fetch_policy },
      })
      return results[0]?.excerpts[0] ?? [errors[0]?.http_status_code, warnings]
    }

    expect(await extract()).toBe('text 1')
    clock.advance(599_000)
    expect(await extract()).toBe('text 1')
    clock.advance(2_000)
    expect(await extract({ max_age_seconds: 700 })).toBe('text 1')
    expect(await extract()).toBe('text 2')
    status = 503
    clock.advance(601_000)
    expect(await extract()).toBe('text 2')
    expect(await extract({ disable_cache_fallback: true })).toEqual([503, null])
    status = 404
    expect(await extract()).toEqual([404, null])
    expect(requests).toBe(5)
  })

  it('is given up when the client has left', async () => {
    const requested = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const { site, client } = await scene((_, response) => {
      response.on('close', closed.resolve)
      requested.resolve()
    })

    const subscription = client.extract({ urls: [site] }).subscribe()
    await requested.promise
    subscription.unsubscribe()

    await expect(closed.promise).resolves.toBeUndefined()
  })

  it('is given up when the service closes', async () => {
    const { site, client, service } = await scene(() => void service.close())

    const outcome = await client.extract({ urls: [site] }).then(types, () => 'refused')

    expect([[[site, 'fetch_error']], 'refused']).toContainEqual(outcome)
  })
})

describe('a request to extract', () => {
  it.each([
    [{ urls: [] }],
    [{ urls: Array.from({ length: 21 }, (_, index) => `https://example.org/${index}`) }],
    [{ urls: ['ftp://example.org'] }],
    [{ urls: ['https://user:password@example.org'] }],
    [{ urls: ['no url'] }],
    [{ urls: ['https://example.org'], advanced_settings: { fetch_policy: { max_age_seconds: 5 } } }],
  ])('is refused with 422: %j', async (body) => {
    const { service } = await research()
    const url = `${service.url}/v1/extract`
    const headers = { 'x-api-key': service.apiKey, 'content-type': 'application/json' }

    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })

    expect(response.status).toBe(422)
    expect(await response.json()).toMatchObject({ type: 'error' })
  })

  it('warns of unknown fields', async () => {
    const { client } = await research({ files })
    const request = { urls: [SPRING], full_content: true }

    const { warnings } = await client.extract(request)

    expect(warnings).toMatchObject([{ detail: { parameter: 'full_content' } }])
  })
})
