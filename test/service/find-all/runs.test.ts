import type { FindAllRun, FindAllSchema } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { HeldProcessor } from '../running.ts'
import { brief, ENRICHMENT, findAllService, LIBRARIES, manyPackages, packageFolder } from './caller.ts'

const UNKNOWN = 'findall_unknown'

describe('a FindAll run', () => {
  it('generates each package of the documents once, and evaluates it', async () => {
    const service = await findAllService()
    const created = await service.post<FindAllRun>('/runs', { ...LIBRARIES, metadata: { team: 'a' } })
    const id = created.body.findall_id
    const events = await service.events(id)
    const { run, candidates, last_event_id } = await service.result(id)

    expect(created.status).toBe(202)
    expect(created.body).toMatchObject({
      generator: 'core',
      metadata: { team: 'a' },
      status: { status: 'queued', is_active: true, termination_reason: null },
    })
    expect(brief(events).slice(0, 2)).toEqual(['status queued', 'status running'])
    expect(brief(events).at(-1)).toBe('status completed')
    expect(candidates.map(({ name, match_status }) => [name, match_status]).toSorted()).toEqual([
      ['@scope/queue', 'matched'],
      ['Testing guide', 'unmatched'],
      ['parser', 'unmatched'],
      ['streams', 'matched'],
    ])
    for (const { name } of candidates) {
      const own = events.filter(({ data }) => data.data.name === name).map(({ event }) => event)
      expect(own).toHaveLength(2)
      expect(own[0]).toBe('findall.candidate.generated')
    }
    expect(run.status).toEqual({
      status: 'completed',
      is_active: false,
      metrics: { generated_candidates_count: 4, matched_candidates_count: 2 },
      termination_reason: 'candidates_exhausted',
    })
    expect(last_event_id).toBe(events.at(-1)?.id)
    expect(events.every(({ id: at, event, data }) => data.event_id === at && data.type === event)).toBe(true)
  })

  it('cites the statement that meets a condition word for word', async () => {
    const service = await findAllService()
    const id = await service.create()
    await service.events(id)
    const { candidates } = await service.result(id)
    const streams = candidates.find(({ name }) => name === 'streams')
    const [basis] = streams?.basis ?? []
    const parser = candidates.find(({ name }) => name === 'parser')

    expect(streams?.url).toBe('https://docs.example/streams/README.md')
    expect(streams?.description).toBe('A library of streams for TypeScript.')
    expect(streams?.output).toEqual({
      typescript: {
        value: 'A library of streams for TypeScript.',
        type: 'match_condition',
        is_matched: true,
      },
    })
    expect(basis?.field).toBe('typescript')
    expect(basis?.confidence).toBe('medium')
    expect(basis?.citations?.[0]?.url).toBe('https://docs.example/streams/README.md')
    expect(basis?.citations?.[0]?.excerpts?.[0]).toContain('A library of streams for TypeScript.')
    expect(parser?.output?.['typescript']).toMatchObject({
      value: 'It does not support TypeScript.',
      is_matched: false,
    })
  })

  it.each([
    ['a negated condition', 'It has no dependencies', ['streams']],
    ['a condition on a number', 'It has more than 100 contributors', ['@scope/queue']],
    ['a condition on a number that is too small', 'It has more than 200 contributors', []],
    ['two parts of one passage', 'It runs in Node.js and browsers', ['streams']],
  ])('evaluates %s', async (_, description, expected) => {
    const service = await findAllService()
    const id = await service.create({ match_conditions: [{ name: 'asked', description }] })
    await service.events(id)
    const { candidates } = await service.result(id)
    const matched = candidates.filter(
      ({ output }) => output?.['asked']?.value != null && output['asked'].is_matched,
    )

    expect(matched.map(({ name }) => name)).toEqual(expected)
  })

  it.each([
    ['the rest of a condition is met', 'packages about logging that have an MIT licence', null],
    ['all of a condition is met', 'packages about parsers that have an MIT licence', true],
    ['a heading has a word of it', 'packages with a performance of 9 GB', true],
    ['nothing is said of it', 'It is written by volunteers', null],
    ['nothing is said of what it must not have', 'It has no telemetry', null],
    ['it is denied', 'The package supports browsers', false],
  ])('matches only if all of each condition was checked and is met: %s', async (_, description, expected) => {
    const manifest = { name: 'tidal', description: 'A parser of tide tables', license: 'MIT' }
    const folder = await packageFolder({
      'tidal/package.json': JSON.stringify(manifest),
      'tidal/README.md': `# tidal

A tide table reader with a parser. It does not support browsers.

## Performance

It reads 9 GB a second.

## About

A parser under the MIT licence.
`,
    })
    const service = await findAllService({ docs: [{ folder, site: 'https://docs.example' }] })
    const match_conditions = [
      { name: 'asked', description },
      { name: 'tides', description: 'It is for tide tables' },
    ]
    const id = await service.create({ entity_type: 'packages', match_conditions })
    await service.events(id)
    const { run, candidates } = await service.result(id)

    expect(candidates).toMatchObject([
      {
        match_status: expected === true ? 'matched' : 'unmatched',
        output: { asked: { is_matched: expected }, tides: { is_matched: true } },
      },
    ])
    expect(run.status.metrics.matched_candidates_count).toBe(expected === true ? 1 : 0)
  })

  it('stops at its match limit, and goes on when it is extended', async () => {
    const docs = [{ folder: await packageFolder(manyPackages(20)), site: 'https://docs.example' }]
    const service = await findAllService({ docs })
    const id = await service.create()
    const events = await service.events(id)
    const before = await service.result(id)
    const extended = await service.post<FindAllSchema>(`/runs/${id}/extend`, { additional_match_limit: 3 })
    const more = await service.events(id, `?last_event_id=${events.at(-1)?.id}`)
    const after = await service.result(id)

    expect(before.run.status).toMatchObject({
      metrics: { matched_candidates_count: 5 },
      termination_reason: 'match_limit_met',
    })
    expect(extended.status).toBe(200)
    expect(extended.body).toMatchObject({ match_limit: 8 })
    expect(brief(more).slice(0, 2)).toEqual(['schema.updated', 'status running'])
    expect(after.run.status).toMatchObject({
      metrics: { matched_candidates_count: 8 },
      termination_reason: 'match_limit_met',
    })
    expect(after.candidates.slice(0, before.candidates.length)).toEqual(before.candidates)
    expect(new Set(after.candidates.map(({ name }) => name)).size).toBe(after.candidates.length)
  })

  it('is not extended while it is active, when it has no more candidates, or beyond 1,000 matches', async () => {
    const processor = new HeldProcessor()
    const service = await findAllService({ processor })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    const held = await processor.next()
    const early = await service.post(`/runs/${id}/extend`, { additional_match_limit: 1 })
    held.fail('It was asked to fail')
    const second = await processor.next()
    second.complete()
    await service.events(id)
    const exhausted = await service.post(`/runs/${id}/extend`, { additional_match_limit: 1 })
    const docs = [{ folder: await packageFolder(manyPackages(20)), site: 'https://docs.example' }]
    const other = await findAllService({ docs })
    const met = await other.create()
    await other.events(met)
    const tooMany = await other.post(`/runs/${met}/extend`, { additional_match_limit: 996 })
    const none = await other.post(`/runs/${met}/extend`, { additional_match_limit: 0 })

    expect([early.status, exhausted.status, tooMany.status, none.status]).toEqual([409, 409, 422, 422])
    expect(exhausted.body.error.message).toContain('candidates_exhausted')
    expect(tooMany.body.error.message).toContain('at most 995')
  })

  it('ends with a low match rate when the generator takes no more candidates', async () => {
    const docs = [{ folder: await packageFolder(manyPackages(40)), site: 'https://docs.example' }]
    const service = await findAllService({ docs })
    const id = await service.create({
      generator: 'preview',
      match_conditions: [{ name: 'cobol', description: 'The library is written in COBOL for mainframes' }],
    })
    await service.events(id)
    const { run, candidates } = await service.result(id)

    expect(candidates).toHaveLength(10)
    expect(run.status.termination_reason).toBe('low_match_rate')
  })

  it('discards what its exclude list has, by name or by URL, and names that were generated before', async () => {
    const docs = [
      {
        folder: await packageFolder({
          ...manyPackages(4),
          'inner/package-0/README.md': '# package-0\n\nAnother library in TypeScript.\n',
        }),
        site: 'https://docs.example',
      },
    ]
    const service = await findAllService({ docs })
    const id = await service.create({
      exclude_list: [
        { name: 'PACKAGE-2', url: 'https://elsewhere.example' },
        { name: 'other', url: 'http://docs.example/package-1/' },
      ],
    })
    const events = await service.events(id)
    const discarded = events.filter(({ event }) => event === 'findall.candidate.discarded')

    expect(discarded.map(({ data }) => data.data.name).toSorted()).toEqual([
      'package-0',
      'package-1',
      'package-2',
    ])
  })

  it('is refused with the name of the beta header that the service has', async () => {
    const { caller } = await findAllService({ betaHeader: 'acme-beta' })
    const answer = await caller.post('/v1beta/findall/runs', LIBRARIES)

    expect(answer.body.error.message).toContain('send the header acme-beta with the value findall-2025-09-15')
  })

  it('is refused without the beta header, with repeated names, and with an invalid limit', async () => {
    const service = await findAllService()
    const plain = await service.caller.post('/v1beta/findall/runs', LIBRARIES)
    const [condition] = LIBRARIES.match_conditions
    const repeated = await service.post('/runs', { ...LIBRARIES, match_conditions: [condition, condition] })
    const small = await service.post('/runs', { ...LIBRARIES, match_limit: 4 })

    expect([plain.status, repeated.status, small.status]).toEqual([422, 422, 422])
    expect(plain.body.error.message).toContain('findall-2025-09-15')
    expect(repeated.body.error.message).toContain('match_conditions.1.name')
  })

  it('is refused beyond the quota of its key, with the time to wait', async () => {
    const service = await findAllService({ quotas: { findAll: { requests: 1, window: 3_600_000 } } })
    await service.create()
    const { status, headers } = await service.post('/runs', LIBRARIES)
    const ingested = await service.post('/ingest', { objective: 'libraries' })

    expect([status, headers.get('retry-after'), ingested.status]).toEqual([429, '3600', 200])
  })

  it('is refused with Retry-After while too many runs are active', async () => {
    const processor = new HeldProcessor()
    const service = await findAllService({ processor, quotas: false })
    const over = await service.create()
    await service.events(over)
    for (const _ of [1, 2]) {
      const id = await service.create()
      await service.post(`/runs/${id}/enrich`, ENRICHMENT)
      await processor.next()
    }
    for (let count = 2; count < 256; count++) await service.create()
    const refused = [
      await service.post('/runs', LIBRARIES),
      await service.post(`/runs/${over}/enrich`, ENRICHMENT),
    ]

    expect(refused.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual([
      [503, '5'],
      [503, '5'],
    ])
    expect((await service.get(`/runs/${over}`)).body).toMatchObject({ status: { is_active: false } })
  })

  it('is not found under an unknown id', async () => {
    const service = await findAllService()
    const answers = await Promise.all([
      ...['', '/schema', '/result', '/events'].map((path) => service.get(`/runs/${UNKNOWN}${path}`)),
      ...['/cancel', '/extend', '/enrich'].map((path) => service.post(`/runs/${UNKNOWN}${path}`, {})),
    ])

    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404))
  })
})
