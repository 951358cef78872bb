import { describe, expect, it } from 'vitest'
import type { FindAllSchema } from '../../../src/protocol/find-all.ts'
import { findAllRequest } from '../../../src/protocol/requests/find-all.ts'
import { ingest } from '../../../src/service/find-all/ingest.ts'
import { bodySchema } from '../../../src/service/http/request-schema.ts'
import { findAllService } from './caller.ts'

describe('ingest', () => {
  it.each([
    [
      'Find all packages that parse XML and have no dependencies.',
      'packages',
      ['parse XML', 'have no dependencies'],
    ],
    ['List every library for TypeScript', 'library', ['for TypeScript']],
    [
      'Which companies are based in Berlin, with more than 50 employees?',
      'companies are',
      ['based in Berlin', 'with more than 50 employees'],
    ],
    ['AI startups founded after 2020 that use Rust', 'AI startups', ['founded after 2020', 'use Rust']],
    ['packages about logging that have an MIT licence', 'packages', ['about logging', 'have an MIT licence']],
    ['battery makers', 'battery makers', ['battery makers']],
  ])('reads the type of the entities and their conditions out of “%s”', (objective, type, clauses) => {
    const { entity_type, match_conditions } = ingest(objective)

    expect(entity_type).toBe(type)
    expect(match_conditions.map(({ description }) => description)).toEqual(
      clauses.map((clause) => expect.stringContaining(clause)),
    )
  })

  it.each(['Find', '?', 'that that that', '🔋', 'find all', 'x'.repeat(5_000), 'a that b, that b, that b'])(
    'makes a schema that a run accepts of “%s”',
    (objective) => {
      const schema = ingest(objective)
      const request = { ...schema, generator: 'base', match_limit: 5 }

      expect(bodySchema(findAllRequest).safeParse(request)).toMatchObject({ success: true })
      expect(new Set(schema.match_conditions.map(({ name }) => name)).size).toBe(
        schema.match_conditions.length,
      )
    },
  )

  it('makes a schema of which a run finds what the objective describes', async () => {
    const service = await findAllService()
    const objective = 'Find all libraries for TypeScript that run in browsers'
    const { status, body } = await service.post<FindAllSchema>('/ingest', { objective })
    const { entity_type, match_conditions } = body
    const id = await service.create({ objective, entity_type, match_conditions })
    await service.events(id)
    const { candidates } = await service.result(id)

    expect(status).toBe(200)
    expect(
      candidates.filter(({ match_status }) => match_status === 'matched').map(({ name }) => name),
    ).toEqual(['streams'])
  })
})
