import type { FindAllEvent, FindAllRequest } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { all, research } from './research.ts'

const files = Object.fromEntries(
  Array.from({ length: 12 }, (_, index) => {
    const language = index % 3 === 0 ? 'Rust' : 'TypeScript'
    return [
      `package-${index}/README.md`,
      `# package-${index}\n\nLibrary ${index} is written in ${language}.\n`,
    ]
  }),
)
const REQUEST: FindAllRequest = {
  objective: 'Find all libraries written in TypeScript',
  entity_type: 'libraries',
  match_conditions: [{ name: 'typescript', description: 'The library is written in TypeScript' }],
  generator: 'core',
  match_limit: 20,
}

type CandidateEvent = Extract<FindAllEvent, { readonly type: `findall.candidate.${string}` }>

const isCandidate = (event: FindAllEvent): event is CandidateEvent =>
  event.type.startsWith('findall.candidate.')

/** The type of each event of a candidate, and the candidate. */
const brief = (events: readonly FindAllEvent[]) =>
  events.filter(isCandidate).map(({ type, data }) => `${type} ${data.data.name}`)

describe('FindAll, from the client to the documents', () => {
  it('turns an objective into candidates as they match, and awaits the result', async () => {
    const { client } = await research({ files })
    const { run, candidates } = await client.findAll.run('Find all libraries written in TypeScript')

    expect(run.status).toMatchObject({ status: 'completed', is_active: false })
    expect(candidates.filter(({ match_status }) => match_status === 'matched')).toHaveLength(8)
  })

  it('has a different event for each time at which it is completed', async () => {
    const { client } = await research({ files })
    const { findall_id: id } = await client.findAll.create(REQUEST)
    const completed: string[] = []
    for (const field of ['one', 'two', 'three']) {
      const events = await all<FindAllEvent>(client.findAll.events(id))
      completed.push(events.at(-1)?.id ?? '')
      await client.findAll.enrich(id, {
        output_schema: { type: 'json', json_schema: { type: 'object', properties: { [field]: {} } } },
      })
    }

    expect(new Set(completed).size).toBe(3)
  })

  it('has the events of its result, each once', async () => {
    const { client } = await research({ files })
    const { findall_id: id } = await client.findAll.create(REQUEST)
    const events = await all<FindAllEvent>(client.findAll.events(id))
    const { candidates } = await client.findAll.result(id)

    expect(brief(events).toSorted()).toEqual(
      candidates
        .flatMap(({ name, match_status }) => [
          `findall.candidate.generated ${name}`,
          `findall.candidate.${match_status} ${name}`,
        ])
        .toSorted(),
    )
  })

  it.each([
    ['cut within events', { kind: 'cut', at: 'line', after: 3, times: 4 }],
    ['cut between events', { kind: 'cut', after: 2, times: 4 }],
    ['closed early', { kind: 'close', after: 3, times: 4 }],
    ['repeated', { kind: 'repeat-events', count: 3, times: 6 }],
    ['refused', { kind: 'status', status: 503, times: 3 }],
    ['compressed', { kind: 'gzip' }],
  ] as const)('emits every event once when the stream is %s', async (_, fault) => {
    const { client, service } = await research({ files })
    const { findall_id: id } = await client.findAll.create(REQUEST)
    const expected = brief(await all<FindAllEvent>(client.findAll.events(id)))
    const path = `/v1beta/findall/runs/${id}/events`
    if (fault.kind === 'repeat-events') service.faults.add({ kind: 'cut', after: 4, times: 5, path })
    service.faults.add({ ...fault, path })
    const events = await all<FindAllEvent>(client.findAll.events(id))

    expect(brief(events)).toEqual(expected)
    expect(service.faults.struck[fault.kind]).toBeGreaterThan(0)
  })

  it('is extended, enriched and cancelled by the client', async () => {
    const { client } = await research({ files })
    const { findall_id: id } = await client.findAll.create({ ...REQUEST, match_limit: 5 })
    await all(client.findAll.events(id))
    const extended = await client.findAll.extend(id, { additional_match_limit: 1 })
    const json_schema = { type: 'object', properties: { language: { type: 'string' } } }
    const enriched = await client.findAll.enrich(id, { output_schema: { type: 'json', json_schema } })
    const events = await all<FindAllEvent>(client.findAll.events(id))
    const { run } = await client.findAll.result(id)

    expect(extended.match_limit).toBe(6)
    expect(enriched.enrichments).toHaveLength(1)
    expect(brief(events).filter((text) => text.startsWith('findall.candidate.enriched'))).toHaveLength(6)
    expect(run.status.metrics.matched_candidates_count).toBe(6)
    await expect(client.findAll.cancel(id)).rejects.toMatchObject({ name: 'ConflictError' })
  })
})
