import { findAllEvent, findAllSource } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { dedupe, mergeWebhooks } from 'rivulet/operators'
import { from, lastValueFrom, of, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { completeness } from '../../src/protocol/event.ts'
import { logCompleteness, mergeDuplicates } from '../../src/log/store/completeness.ts'
import { webhookEvent } from '../../src/protocol/webhook-event.ts'

const timestamp = '2026-01-01T00:00:00Z'
const metrics = { generated_candidates_count: 5, matched_candidates_count: 2 }
const run = {
  findall_id: 'f',
  generator: 'base',
  status: { status: 'completed', is_active: false, metrics, termination_reason: 'match_limit_met' },
}
const candidate = { candidate_id: 'c', name: 'Acme', url: 'https://acme.example', match_status: 'matched' }
const output = { founded: { value: 1999, type: 'match_condition', is_matched: true } }
const basis = [{ field: 'founded', reasoning: 'says so', citations: [] }]

function streamed(type: string, data: object, event_id = '7') {
  return findAllEvent('f', { type, event_id, timestamp, data }, 'stream')
}

function delivered(type: string, data: object): ResearchEvent {
  return webhookEvent({ type, timestamp, data })
}

describe("a FindAll run's webhook", () => {
  it.each(['completed', 'cancelled', 'failed'])('%s is the status in the stream', (name) => {
    const webhook = delivered(`findall.run.${name}`, run)

    expect(webhook).toMatchObject({ type: 'findall.status', source: findAllSource('f'), via: 'webhook' })
    expect(webhook.id).toBe(streamed('findall.status', run).id)
  })

  it('has the identity of the status in the stream, whatever the order of its fields', () => {
    const { status, is_active, termination_reason } = run.status
    const { generated_candidates_count, matched_candidates_count } = metrics
    const reordered = {
      termination_reason,
      metrics: { matched_candidates_count, generated_candidates_count },
      is_active,
      status,
    }

    const webhook = delivered('findall.run.completed', { ...run, status: reordered })

    expect(webhook.id).toBe(streamed('findall.status', run).id)
  })

  it('has the identity of the status in the stream where one has null for an absent field', () => {
    const { termination_reason: _, ...absent } = run.status

    const webhook = delivered('findall.run.completed', { ...run, status: absent })

    const status = { ...absent, termination_reason: null, metrics: { ...metrics, other: null } }
    expect(webhook.id).toBe(streamed('findall.status', { ...run, status }).id)
  })

  it('does not have the identity of another status', () => {
    const other = { ...run, status: { ...run.status, metrics: { ...metrics, matched_candidates_count: 3 } } }

    expect(delivered('findall.run.completed', run).id).not.toBe(streamed('findall.status', other).id)
  })

  it('has another identity when the run has reached the same status once more', () => {
    const first = { ...run, modified_at: '2026-01-01T00:00:00Z' }
    const again = { ...run, modified_at: '2026-01-02T00:00:00Z' }

    expect(delivered('findall.run.completed', again).id).not.toBe(streamed('findall.status', first).id)
    expect(delivered('findall.run.completed', again).id).toBe(streamed('findall.status', again).id)
    expect(streamed('findall.status', { ...run, modified_at: null }).id).toBe(
      streamed('findall.status', run).id,
    )
  })
})

describe("a candidate's webhook", () => {
  it('has the identity of the event in the stream', () => {
    const webhook = delivered('findall.candidate.matched', { ...candidate, findall_id: 'f' })

    const event = streamed('findall.candidate.matched', candidate)
    expect([webhook.source, webhook.id]).toEqual([event.source, event.id])
  })

  it('may have the id of its run beside its data', () => {
    const payload = { type: 'findall.candidate.matched', timestamp, findall_id: 'f', data: candidate }

    expect(webhookEvent(payload).id).toBe(streamed('findall.candidate.matched', candidate).id)
  })

  it('has the identity of an enrichment in the stream, whatever the order of its output', () => {
    const enriched = { ...candidate, output: { a: { value: 1, type: 'enrichment' }, ...output } }
    const reordered = { ...candidate, output: { ...output, a: { type: 'enrichment', value: 1 } } }

    const webhook = delivered('findall.candidate.enriched', { ...reordered, findall_id: 'f' })

    expect(webhook.id).toBe(streamed('findall.candidate.enriched', enriched).id)
  })

  it.each([
    ['without the id of its run', candidate],
    ['with null for the id of its run', { ...candidate, findall_id: null }],
    ['with an id that must not be part of a path', { ...candidate, findall_id: '..' }],
    ['without an id of the candidate', { findall_id: 'f', match_status: 'matched' }],
    ['that is null', null],
  ])('%s is unknown', (_, data) => {
    const payload = { type: 'findall.candidate.matched', timestamp, data }

    expect(webhookEvent(payload)).toMatchObject({ type: 'unknown', data: payload })
  })

  it('has no cursor, since it may be ahead of the stream', () => {
    const payload = { type: 'findall.candidate.matched', event_id: '9', timestamp, data: candidate }

    expect(findAllEvent('f', payload, 'webhook')).not.toHaveProperty('cursor')
  })

  it('is dropped by mergeWebhooks when the stream has had the same', async () => {
    const payload = {
      type: 'findall.candidate.matched',
      timestamp,
      data: { ...candidate, findall_id: 'f', output, basis },
    }
    const stream = from<ResearchEvent[]>([
      streamed('findall.candidate.matched', { ...candidate, output, basis }),
      streamed('findall.status', run),
    ])
    const deliveries = of({ id: 'd', timestamp: 0, payload })

    const events = await lastValueFrom(stream.pipe(mergeWebhooks(deliveries), toArray()))

    expect(events.map(({ type }) => type)).toEqual(['findall.candidate.matched', 'findall.status'])
  })
})

describe('the completeness of a candidate', () => {
  const thin = streamed('findall.candidate.matched', { ...candidate, output: null })
  const withOutput = streamed('findall.candidate.matched', { ...candidate, output })
  const withBasis = streamed('findall.candidate.matched', { ...candidate, basis })
  const full = streamed('findall.candidate.matched', { ...candidate, output, basis })

  it('counts its output and its basis', () => {
    const ofAll = [thin, withOutput, withBasis, full].map((event) => completeness(event))

    const [none = -1, one = -1, other = -1, both = -1] = ofAll
    expect(none).toBe(0)
    expect(new Set(ofAll).size).toBe(4)
    expect(one | other).toBe(both)
  })

  it('lets the complete event pass dedupe after the thin one, and no thin one after it', async () => {
    const events = await lastValueFrom(of(thin, full, thin, withOutput).pipe(dedupe(), toArray()))

    expect(events).toEqual([thin, full])
  })

  it('is what a log merges: each copy brings what only it has', () => {
    expect(mergeDuplicates(withBasis, withOutput)).toMatchObject({ data: { data: { output, basis } } })
    expect(logCompleteness(mergeDuplicates(withBasis, withOutput))).toBe(logCompleteness(full))
  })

  it('is none for data that came from elsewhere and is not a candidate', async () => {
    const odd = [null, {}, { data: null }].map((data, n) => ({ type: thin.type, id: String(n), data }))

    await expect(lastValueFrom(of(...odd).pipe(dedupe(), toArray()))).resolves.toHaveLength(3)
  })
})
