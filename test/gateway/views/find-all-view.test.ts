import type { FindAllCandidate, FindAllRun } from 'rivulet'
import { findAllEvent, findAllSource, gapEvent } from 'rivulet'
import { findAllsView, findAllView } from 'rivulet/gateway'
import { rowKey } from 'rivulet/live'
import { describe, expect, it } from 'vitest'
import { viewed } from './viewed.ts'

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`

function status(second: number, fields: Partial<FindAllRun['status']>, counts = [0, 0]) {
  const [generated_candidates_count, matched_candidates_count] = counts
  const metrics = { generated_candidates_count, matched_candidates_count }
  const given = { status: 'running', is_active: true, metrics, termination_reason: null, ...fields }
  const data = { findall_id: 'f', generator: 'core', status: given }
  return findAllEvent('f', { type: 'findall.status', timestamp: at(second), data }, 'stream')
}

function candidate(
  second: number,
  kind: 'generated' | 'matched' | 'unmatched' | 'discarded' | 'enriched',
  fields: Partial<FindAllCandidate> = {},
) {
  const match_status = kind === 'enriched' ? 'matched' : kind
  const data = { candidate_id: 'c', name: 'Acme', url: 'https://acme.example', match_status, ...fields }
  return findAllEvent('f', { type: `findall.candidate.${kind}`, timestamp: at(second), data }, 'stream')
}

const MATCHED = candidate(2, 'matched', {
  output: { founded: { value: '2020', type: 'match_condition', is_matched: true } },
  basis: [{ field: 'founded', reasoning: 'It says so.', citations: [], confidence: 'high' }],
})
const ENRICHED = candidate(3, 'enriched', {
  output: { staff: { value: 30, type: 'enrichment' } },
  basis: [{ field: 'staff', reasoning: 'A page.', citations: [], confidence: 'low' }],
})
const WHOLE = {
  candidate_id: 'c',
  match_status: 'matched',
  output: { founded: { is_matched: true }, staff: { value: 30 } },
  basis: [
    { field: 'founded', confidence: 'high' },
    { field: 'staff', confidence: 'low' },
  ],
}

describe('findAllsView', () => {
  it('has each run with its last state and counts, in any order of its events', async () => {
    const first = status(1, {}, [2, 1])
    const last = status(9, { status: 'completed', is_active: false, termination_reason: 'timeout' }, [5, 3])
    for (const events of [
      [first, MATCHED, last],
      [last, MATCHED, first],
    ]) {
      const view = await viewed(findAllsView())
      const rows = await view.rows(...events)

      expect(rows.get('f')).toMatchObject({
        findAll: 'f',
        run: { status: { status: 'completed', metrics: { matched_candidates_count: 3 } } },
        objective: null,
        time: at(9),
      })
    }
  })

  it('has a run whose first event is a candidate, and its objective once that is known', async () => {
    const view = await viewed(findAllsView())
    expect((await view.rows(MATCHED)).get('f')).toMatchObject({ run: null, objective: null })

    const schema = { objective: 'Companies in Jena', entity_type: 'companies', match_conditions: [] }
    const wire = { type: 'findall.schema.updated', timestamp: at(3), data: schema }
    const rows = await view.rows(findAllEvent('f', wire, 'stream'))
    expect(rows.get('f')).toMatchObject({ objective: 'Companies in Jena' })
  })

  it('names the source of a run as the log does, whatever its id', async () => {
    const id = 'a/b%2F ü?'
    const wire = { type: 'findall.candidate.matched', timestamp: at(1), data: { candidate_id: 'c' } }
    const view = await viewed(findAllsView())
    const rows = await view.rows(findAllEvent(id, wire, 'stream'))

    expect(rows.get(rowKey([id]))?.findAll).toBe(id)
    expect(findAllsView().definition.source?.([id])).toBe(findAllSource(id))
    expect(findAllView().definition.source?.([id, 'candidate', 'c'])).toBe(findAllSource(id))
  })
})

describe('findAllView', () => {
  it('has a candidate with the outputs and the evidence of all its events, in any order', async () => {
    const generated = candidate(1, 'generated', { description: 'A maker' })
    for (const events of [
      [generated, MATCHED, ENRICHED],
      [ENRICHED, MATCHED, generated],
      [MATCHED, ENRICHED, generated],
    ]) {
      const view = await viewed(findAllView())
      const rows = await view.rows(...events)
      const row = rows.get(rowKey(['f', 'candidate', 'c']))

      expect(row).toMatchObject({ kind: 'candidate', candidate: { description: 'A maker' } })
      expect(
        row?.kind === 'candidate' && [...(row.candidate.basis ?? [])].map(({ field }) => field).toSorted(),
      ).toEqual(['founded', 'staff'])
      expect(row).toMatchObject({ candidate: { ...WHOLE, basis: expect.any(Array) } })
    }
  })

  it('keeps the outputs of a candidate when a webhook lacks them', async () => {
    const view = await viewed(findAllView())
    const rows = await view.rows(MATCHED, ENRICHED, candidate(4, 'enriched', { output: null, basis: null }))

    expect(rows.get(rowKey(['f', 'candidate', 'c']))).toMatchObject({ candidate: WHOLE })
  })

  it('has the state of the run, what it looks for, and what was missed', async () => {
    const schema = { objective: 'Companies', entity_type: 'companies', match_conditions: [] }
    const gap = gapEvent(findAllSource('f'), { from: null, to: null, reason: 'too old' }, 'stream', '1')
    const view = await viewed(findAllView())
    const rows = await view.rows(
      findAllEvent('f', { type: 'findall.schema.updated', timestamp: at(1), data: schema }, 'stream'),
      status(2, {}, [4, 2]),
      gap,
    )

    expect(rows.get('f')).toMatchObject({
      kind: 'run',
      schema,
      run: { status: { metrics: { generated_candidates_count: 4 } } },
    })
    expect(rows.get(rowKey(['f', 'notice', gap.id]))).toMatchObject({ kind: 'notice', type: 'stream.gap' })
  })

  it('shortens a large candidate, and says so', async () => {
    const view = await viewed(findAllView())
    const output = { text: { value: 'x'.repeat(400_000), type: 'enrichment' } }
    const rows = await view.rows(candidate(1, 'enriched', { output }), candidate(2, 'enriched'))
    const row = rows.get(rowKey(['f', 'candidate', 'c']))

    expect(row).toMatchObject({ candidate: { name: 'Acme' }, truncated: true })
    expect(JSON.stringify(row).length).toBeLessThan(256 * 1024)
  })
})
