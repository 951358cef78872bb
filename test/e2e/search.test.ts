import { describe, expect, it } from 'vitest'
import { firstValueFrom } from 'rxjs'
import { all, research } from './research.ts'

const paragraph = (topic: string) =>
  `Notes on ${topic}. What follows was written down by hand and copied once, with the dates kept as they were.`

/** Two sites, and one document that only mentions the subject of the others. */
const files = {
  'tides.example.edu/spring.md': [
    '---\ndate: 2025-06-01\n---\n',
    '# Spring tides\n',
    'A spring tide comes at new and full moon, when the moon and the sun pull in one line.\n',
    'Spring tides have the largest tidal range, and a spring tide floods the lower meadows.\n',
  ].join('\n'),
  'news.example.com/harbour.md': [
    '---\ndate: 2020-01-15\n---\n',
    '# Harbour news\n',
    `${paragraph('the harbour')} The ferry was late, since the tide was low. ${paragraph('the ferry')}\n`,
    `${paragraph('the market')} ${paragraph('the pier')} ${paragraph('the lighthouse')}\n`,
  ].join('\n'),
  'news.example.com/bread.html':
    '<html><head><title>Bread</title></head><body><p>Rye bread rises slowly.</p></body></html>',
}

const SPRING = 'https://tides.example.edu/spring'
const HARBOUR = 'https://news.example.com/harbour'

describe('search, end to end', () => {
  it('finds documents, the most relevant first, with excerpts from them', async () => {
    const { client } = await research({ files })

    const answers = await all(client.search({ search_queries: ['spring tide moon', 'tide'] }))

    expect(answers).toHaveLength(1)
    const [first, second, ...rest] = answers[0]?.results ?? []
    expect(first).toMatchObject({ title: 'Spring tides', publish_date: '2025-06-01' })
    expect(first?.url).toContain(SPRING)
    expect(first?.excerpts.join('\n')).toContain('A spring tide comes at new and full moon')
    expect(second).toMatchObject({ title: 'Harbour news', publish_date: '2020-01-15' })
    expect(rest).toEqual([])
    expect(answers[0]).toMatchObject({ warnings: null, search_id: expect.any(String) })
  })

  it.each([
    ['include_domains', { include_domains: ['.edu'] }, [SPRING]],
    ['include_domains of a whole site', { include_domains: ['news.example.com'] }, [HARBOUR]],
    ['exclude_domains', { exclude_domains: ['example.edu'] }, [HARBOUR]],
    ['after_date', { after_date: '2024-01-01' }, [SPRING]],
    ['two of them that leave nothing', { include_domains: ['.com'], after_date: '2024-01-01' }, []],
  ])('respects %s', async (_, source_policy, expected) => {
    const { client } = await research({ files })

    const search = client.search({ search_queries: ['tide'], advanced_settings: { source_policy } })
    const { results } = await firstValueFrom(search)

    expect(results.map(({ url }) => url)).toEqual(expected.map((url) => expect.stringContaining(url)))
  })

  it('respects max_results, with the best results', async () => {
    const { client } = await research({ files })

    const search = client.search({ search_queries: ['spring tide'], advanced_settings: { max_results: 1 } })
    const { results } = await firstValueFrom(search)

    expect(results.map(({ title }) => title)).toEqual(['Spring tides'])
  })

  it("passes on the service's warnings about adjusted and ignored settings", async () => {
    const { client } = await research({ files })

    const search = client.search({
      search_queries: ['tide'],
      mode: 'turbo',
      advanced_settings: { location: 'de', excerpt_settings: { max_chars_per_result: 10 } },
    })
    const { results, warnings } = await firstValueFrom(search)

    expect(results).not.toEqual([])
    expect(warnings).toEqual([
      {
        type: 'input_validation_warning',
        message: expect.stringContaining('max_chars_per_result'),
        detail: { parameter: 'max_chars_per_result', given: 10, used: 1_000 },
      },
      { type: 'warning', message: expect.stringContaining('location'), detail: { parameter: 'location' } },
    ])
  })

  it('accepts a search of the beta interface with only an objective', async () => {
    const { client } = await research({ files })

    const answers = await all(
      client.searchBeta({
        objective: 'When does a spring tide come?',
        processor: 'base',
        max_results: 1,
        max_chars_per_result: 1_000,
      }),
    )

    expect(answers).toEqual([
      {
        search_id: expect.stringMatching(/^search_/),
        results: [expect.objectContaining({ title: 'Spring tides', url: expect.stringContaining(SPRING) })],
      },
    ])
  })

  it('accepts a search of the beta interface with queries and a source policy', async () => {
    const { client } = await research({ files })

    const search = client.searchBeta({
      search_queries: ['tide'],
      source_policy: { exclude_domains: ['.edu'] },
    })
    const { results } = await firstValueFrom(search)

    expect(results.map(({ title }) => title)).toEqual(['Harbour news'])
  })
})
