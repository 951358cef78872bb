import type { SearchResponse } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { write } from '../corpus/folder.ts'
import { documentFolder, running } from '../running.ts'
import type { SearchBetaResponse } from '../../../src/protocol/search.ts'

describe('POST /v1/search', () => {
  it('responds with ranked results, their excerpts, and ids', async () => {
    const { post } = await running()
    const answer = await post<SearchResponse>('/v1/search', {
      search_queries: ['solid electrolyte dendrites'],
    })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.body).toMatchObject({
      search_id: expect.stringMatching(/^search_/),
      session_id: expect.stringMatching(/^session_/),
      warnings: null,
      usage: [{ name: 'search', count: 1 }],
    })
    expect(answer.body.results[0]).toEqual({
      url: expect.any(String),
      title: 'Solid state batteries',
      publish_date: expect.toSatisfy((date) => date === null || /^\d{4}-\d{2}-\d{2}$/.test(String(date))),
      excerpts: expect.arrayContaining([expect.stringContaining('dendrites')]),
    })
  })

  it('searches all queries in one call and returns each document once', async () => {
    const { post } = await running()
    const search_queries = ['spring tides moon', 'solid electrolyte', 'solid state batteries']
    const answer = await post<SearchResponse>('/v1/search', {
      search_queries,
      objective: 'batteries and the sea',
    })
    const titles = answer.body.results.map(({ title }) => title)
    expect(titles).toEqual(expect.arrayContaining(['Solid state batteries', 'Tides']))
    expect(new Set(titles).size).toBe(titles.length)
  })

  it('returns at most max_results', async () => {
    const { post } = await running()
    const body = { search_queries: ['batteries', 'tides'], advanced_settings: { max_results: 1 } }
    const answer = await post<SearchResponse>('/v1/search', body)
    expect(answer.body.results).toHaveLength(1)
  })

  it('finds nothing if nothing matches', async () => {
    const { post } = await running()
    const answer = await post<SearchResponse>('/v1/search', { search_queries: ['zeppelin'] })
    expect(answer.status).toBe(200)
    expect(answer.body.results).toEqual([])
  })

  it('a session keeps its id', async () => {
    const { post } = await running()
    const answer = await post<SearchResponse>('/v1/search', { search_queries: ['tides'], session_id: 'mine' })
    expect(answer.body.session_id).toBe('mine')
  })

  it.each(['turbo', 'fast', 'basic', 'advanced'])('mode %s is accepted', async (mode) => {
    const { post } = await running()
    const answer = await post<SearchResponse>('/v1/search', { search_queries: ['tides'], mode })
    expect(answer.status).toBe(200)
    expect(answer.body.results).not.toHaveLength(0)
  })

  it('a faster mode has shorter excerpts, and fewer results have longer ones', async () => {
    const budgets = new Map<string, number>()
    const { service, post } = await running()
    const search = service.corpus.search
    let name = ''
    service.corpus.search = (query, budget) => {
      budgets.set(name, budget.charactersPerResult)
      return search(query, budget)
    }
    const ask = async (as: string, mode: string, max_results: number) => {
      name = as
      await post('/v1/search', { search_queries: ['tides'], mode, advanced_settings: { max_results } })
    }
    await ask('turbo', 'turbo', 10)
    await ask('advanced', 'advanced', 10)
    await ask('one', 'advanced', 1)
    expect(budgets.get('turbo')).toBeLessThan(budgets.get('advanced') ?? 0)
    expect(budgets.get('advanced')).toBeLessThan(budgets.get('one') ?? 0)
  })

  it.each<[object, string[]]>([
    [{ include_domains: ['.edu'] }, ['Tides']],
    [{ include_domains: ['example.com'] }, ['Sodium ion batteries', 'Solid state batteries']],
    [{ exclude_domains: ['cells.example.com'] }, ['Tides']],
    [{ after_date: '2999-01-01' }, []],
    [{}, ['Sodium ion batteries', 'Solid state batteries', 'Tides']],
  ])('the source policy %j is obeyed', async (source_policy, expected) => {
    const { post } = await running()
    const answer = await post<SearchResponse>('/v1/search', {
      search_queries: ['batteries', 'tides'],
      advanced_settings: { source_policy },
    })
    expect(answer.body.results.map(({ title }) => title).toSorted()).toEqual(expected)
  })

  it('warns of adjusted and ignored parameters', async () => {
    const { post } = await running()
    const answer = await post<SearchResponse>('/v1/search', {
      search_queries: ['tides'],
      max_chars_total: 10,
      advanced_settings: {
        max_results: 500,
        location: 'de',
        excerpt_settings: { max_chars_per_result: 20 },
        fetch_policy: { max_age_seconds: 600 },
      },
    })
    expect(answer.status).toBe(200)
    const adjusted = (parameter: string, given: number, used: number) => ({
      type: 'input_validation_warning',
      message: `${parameter} was adjusted from ${given} to ${used}`,
      detail: { parameter, given, used },
    })
    expect(answer.body.warnings).toEqual([
      adjusted('max_results', 500, 40),
      adjusted('max_chars_per_result', 20, 1_000),
      adjusted('max_chars_total', 10, 1_000),
      { type: 'warning', message: expect.stringMatching(/location/), detail: { parameter: 'location' } },
      {
        type: 'warning',
        message: expect.stringMatching(/fetch_policy/),
        detail: { parameter: 'fetch_policy' },
      },
    ])
  })

  it('warns of the words that it leaves out, and counts each query and the objective', async () => {
    const docs = await documentFolder()
    const padding = (from: number) => Array.from({ length: 40 }, (_, i) => `common${from + i}`).join(' ')
    for (const name of ['a', 'b'])
      await write(docs, { [`${name}.md`]: `${name} ${[0, 40, 80, 120].map(padding).join(' ')}` })
    const { post } = await running({ docs })
    const answer = await post<SearchResponse>('/v1/search', {
      search_queries: [padding(0), `${padding(40)} missing`, `${padding(80)} tides`],
      objective: `${padding(120)} dendrites`,
    })
    const titles = answer.body.results.map(({ title }) => title)
    expect(titles).toEqual(expect.arrayContaining(['Solid state batteries', 'Tides']))
    expect(answer.body.warnings).toEqual([
      {
        type: 'warning',
        message: expect.stringContaining('more than 64 different words'),
        detail: { parameter: 'search_queries', unused: expect.any(Array) },
      },
    ])
  })

  it('never splits characters in quotes', async () => {
    const docs = await documentFolder()
    const { service, post } = await running({ docs })
    const sentence = 'Der Wal – 鯨, 🐋 – taucht für Stunden.'
    await write(docs, { 'wal.md': `# Wale\n\n${sentence}` })
    await service.corpus.settled()
    const answer = await post<SearchResponse>('/v1/search', { search_queries: ['taucht'] })
    expect(answer.body.results.map(({ excerpts }) => excerpts)).toEqual([[expect.stringContaining(sentence)]])
  })

  it('names unknown fields, including nested ones', async () => {
    const { post } = await running()
    const answer = await post<SearchResponse>('/v1/search', {
      search_queries: ['tides'],
      advanced_setings: {},
      advanced_settings: { max_result: 1, source_policy: { domains: ['example.org'] } },
    })
    expect(answer.status).toBe(200)
    expect(answer.body.warnings?.map(({ detail }) => detail)).toEqual([
      { parameter: 'advanced_setings' },
      { parameter: 'advanced_settings.max_result' },
      { parameter: 'advanced_settings.source_policy.domains' },
    ])
  })

  it('divides max_chars_total among the results, each with an excerpt', async () => {
    const docs = await documentFolder()
    const { service, post } = await running({ docs })
    const paragraph = 'Every tide gauge along the coast was read again. '.repeat(80)
    for (let n = 0; n < 5; n++) await write(docs, { [`gauge-${n}.md`]: `# Gauge ${n}\n\n${n} ${paragraph}` })
    await service.corpus.settled()

    const answer = await post<SearchResponse>('/v1/search', {
      search_queries: ['tide gauge'],
      max_chars_total: 1_000,
    })

    const lengths = answer.body.results.map(({ excerpts }) => excerpts.join('').length)
    expect(lengths.length).toBeGreaterThan(4)
    for (const length of lengths) expect(length).toBeGreaterThan(50)
    expect(lengths.reduce((sum, length) => sum + length)).toBeLessThanOrEqual(1_000)
    for (const { url, excerpts } of answer.body.results) {
      for (const excerpt of excerpts) expect(service.corpus.document(url)?.text).toContain(excerpt)
    }
  })

  it.each([
    ['no query', {}, 'search_queries'],
    ['an empty list of queries', { search_queries: [] }, 'search_queries'],
    ['an empty query', { search_queries: [' '] }, 'search_queries.0'],
    ['a query that is no text', { search_queries: [7] }, 'search_queries.0'],
    ['an unknown mode', { search_queries: ['x'], mode: 'slow' }, 'mode'],
    ['no results', { search_queries: ['x'], advanced_settings: { max_results: 0 } }, 'max_results'],
    ['half a result', { search_queries: ['x'], advanced_settings: { max_results: 1.5 } }, 'max_results'],
    [
      'a malformed country',
      { search_queries: ['x'], advanced_settings: { location: 'Germany' } },
      'location',
    ],
    [
      'a malformed date',
      { search_queries: ['x'], advanced_settings: { source_policy: { after_date: '2026-02-30' } } },
      'after_date',
    ],
    [
      'a malformed domain',
      {
        search_queries: ['x'],
        advanced_settings: { source_policy: { include_domains: ['https://x.org/'] } },
      },
      'include_domains.0',
    ],
  ])('%s is a 422 with an ErrorResponse that names the field', async (_, body, field) => {
    const { post } = await running()
    const answer = await post('/v1/search', body)
    expect(answer.status).toBe(422)
    expect(answer.body.type).toBe('error')
    expect(answer.body.error.message).toContain(`${field}: `)
  })

  it('null for an optional field means absent', async () => {
    const { post } = await running()
    const body = {
      search_queries: ['tides'],
      objective: null,
      mode: null,
      advanced_settings: { location: null },
    }
    const answer = await post<SearchResponse>('/v1/search', body)
    expect(answer.status).toBe(200)
    expect(answer.body.warnings).toBeNull()
  })
})

describe('POST /v1beta/search', () => {
  it('answers with an id and results, and nothing else', async () => {
    const { post } = await running()
    const answer = await post<SearchBetaResponse>('/v1beta/search', {
      objective: 'How do solid electrolytes stop dendrites?',
      search_queries: ['solid electrolyte'],
      processor: 'base',
      max_results: 1,
      max_chars_per_result: 1_500,
    })
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      search_id: expect.stringMatching(/^search_/),
      results: [expect.objectContaining({ title: 'Solid state batteries' })],
    })
  })

  it('an objective alone is sufficient', async () => {
    const { post } = await running()
    const answer = await post<SearchBetaResponse>('/v1beta/search', {
      objective: 'spring tides and the moon',
    })
    expect(answer.body.results.map(({ title }) => title)).toContain('Tides')
  })

  it('neither a query nor an objective is a 422', async () => {
    const { post } = await running()
    const answer = await post('/v1beta/search', { objective: ' ', max_results: 3 })
    expect(answer.status).toBe(422)
    expect(answer.body.error.message).toMatch(/query or an objective/)
  })

  it('obeys its source policy', async () => {
    const { post } = await running()
    const answer = await post<SearchBetaResponse>('/v1beta/search', {
      search_queries: ['batteries', 'tides'],
      source_policy: { exclude_domains: ['.com'] },
    })
    expect(answer.body.results.map(({ url }) => new URL(url).hostname)).toEqual(['sea.example.edu'])
  })
})
