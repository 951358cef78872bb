import { describe, expect, it } from 'vitest'
import { research } from '../../e2e/research.ts'
import { html, liveDocuments, site, sitemap } from './site.ts'

const SECRET = 'Bearer hunter2'
const authorization = ({ requests }: Awaited<ReturnType<typeof site>>) =>
  requests.map(({ path, headers }) => [path, headers.authorization])

describe('the header of a source', () => {
  it('is sent with its robots.txt, its listing and its pages, and to no other source', async () => {
    let ofRobots: string | undefined
    const wiki = await site({ '/a': html('ebb') })
    wiki.content['/s.xml'] = sitemap(`${wiki.url}/a`)
    wiki.content['/robots.txt'] = ({ headers }, response) => {
      ofRobots = headers.authorization
      response.writeHead(404).end()
    }
    const other = await site({ '/': html('flood') })
    await liveDocuments([`${wiki.url}/s.xml`, other.url], {
      headers: new Map([[wiki.url, { authorization: SECRET }]]),
    })

    expect(authorization(wiki)).toEqual([
      ['/s.xml', SECRET],
      ['/a', SECRET],
    ])
    expect(ofRobots).toBe(SECRET)
    expect(authorization(other)).toEqual([['/', undefined]])
  })

  it('is not sent after a redirect to another origin, also not back at its own', async () => {
    const wiki = await site({ '/back': html('ebb') })
    const other = await site({ '/': { status: 302, headers: { location: `${wiki.url}/back` } } })
    wiki.content['/'] = { status: 302, headers: { location: other.url } }
    await liveDocuments([wiki.url], { headers: new Map([[wiki.url, { authorization: SECRET }]]) })

    expect(authorization(wiki)).toEqual([
      ['/', SECRET],
      ['/back', undefined],
    ])
    expect(authorization(other)).toEqual([['/', undefined]])
  })

  it('is in no error', async () => {
    const wiki = await site({ '/': { status: 401 } })
    const { errors, live } = await liveDocuments([wiki.url], {
      headers: new Map([[wiki.url, { authorization: SECRET }]]),
    })
    expect(errors).toHaveLength(1)
    expect(JSON.stringify([errors, live.sources()])).not.toContain('hunter2')
  })

  it.each<[string, Record<string, Record<string, string>>]>([
    ['an origin without a source', { 'https://other.example': { authorization: SECRET } }],
    ['a path', { 'https://wiki.example/a': { authorization: SECRET } }],
    ['a line break', { 'https://wiki.example': { authorization: `${SECRET}\r\nx: y` } }],
    ['a header of the connection', { 'https://wiki.example': { Host: SECRET } }],
    ['no name', { 'https://wiki.example': { '': SECRET } }],
  ])('is refused with %s, without its value', async (_, sourceHeaders) => {
    const error: unknown = await research({ sources: ['https://wiki.example/'], sourceHeaders }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toMatchObject({ name: 'ArgumentError', argument: 'sourceHeaders' })
    expect(String(error)).not.toContain('hunter2')
  })
})
