import * as fc from 'fast-check'
import type { Entry } from 'rivulet/log'
import { describe, expect, it } from 'vitest'
import { viewProcess } from '../../../src/gateway/feed/view-process.ts'
import { rowPath } from '../../../src/protocol/live.ts'
import { dashboardViews } from '../../../src/dashboard/views.ts'

/** What the state of a process may take, in bytes, and the key of one, in characters. */
const MAX_STATE = 256 * 1024
const MAX_KEY = 1_024

const TYPES = [
  'monitor.event_stream',
  'monitor.snapshot',
  'monitor.completion',
  'monitor.error',
  'monitor.cancelled',
  'task_group.status',
  'task_run.state',
  'task_run.progress_stats',
  'task_run.progress_msg',
  'findall.status',
  'findall.candidate.generated',
  'findall.candidate.matched',
  'findall.candidate.unmatched',
  'findall.candidate.discarded',
  'findall.candidate.enriched',
  'findall.schema.updated',
  'error',
  'stream.gap',
  'stream.oversized',
  'source.failed',
  'source.live',
  'source.lost',
  'alert.firing',
  'alert.resolved',
  'alert.unknown',
  'alert.known',
  'alert.pending',
  'alert.inactive',
  'gateway.search',
  'unknown',
]

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string().map((part) => `${part}\uD800`),
  fc.string({ minLength: 1 }).map((part) => part.repeat(2_000)),
  fc.constantFrom('', '/', '%', '__proto__', '2026-01-01T00:00:00Z', 'completed', 'failed'),
)

const anything = fc.oneof(
  text,
  fc.constantFrom(null, 0, -1, true),
  fc.jsonValue(),
  fc.array(text, { maxLength: 5 }),
)

/** Data whose fields are those that views read, each of them anything. */
const data = fc.oneof(
  anything,
  fc.record(
    {
      run: fc.oneof(
        anything,
        fc.record(
          {
            run_id: anything,
            status: anything,
            taskgroup_id: fc.oneof(text, anything),
            error: anything,
            modified_at: anything,
            metadata: anything,
          },
          { requiredKeys: ['taskgroup_id'] },
        ),
      ),
      output: anything,
      input: anything,
      status: fc.oneof(anything, fc.record({ modified_at: anything, task_run_status_counts: anything })),
      alert: anything,
      labels: fc.oneof(anything, fc.dictionary(fc.string(), anything)),
      since: anything,
      reason: anything,
      episode: anything,
      annotations: anything,
      sub: anything,
      session: anything,
      request: anything,
      response: fc.oneof(anything, fc.record({ results: anything })),
      lost: anything,
      type: anything,
      message: fc.oneof(text, anything),
      progress_meter: anything,
      source_stats: fc.oneof(
        anything,
        fc.record({ num_sources_read: anything, num_sources_considered: anything }),
      ),
      data: fc.oneof(
        anything,
        fc.record(
          {
            candidate_id: fc.oneof(text, anything),
            name: anything,
            url: anything,
            match_status: anything,
            output: fc.oneof(anything, fc.dictionary(fc.string(), anything)),
            basis: fc.oneof(anything, fc.array(fc.oneof(anything, fc.record({ field: anything })))),
          },
          { requiredKeys: ['candidate_id'] },
        ),
        fc.record({
          findall_id: anything,
          generator: anything,
          status: fc.oneof(anything, fc.record({ status: fc.oneof(text, anything), metrics: fc.object() })),
        }),
        fc.record({ objective: anything, match_conditions: anything }),
      ),
    },
    { requiredKeys: [] },
  ),
)

const entry = fc.record({
  id: text,
  source: fc.oneof(
    text,
    text.map((id) => `/v1/monitors/${id}`),
    text.map((id) => `/v1/tasks/groups/${id}`),
    text.map((id) => `/v1/tasks/runs/${id}`),
    text.map((id) => `/v1beta/findall/runs/${id}`),
    text.map((name) => `/rules/${name}`),
    fc.constantFrom(
      '/v1/monitors/m',
      '/v1/tasks/groups/g',
      '/v1/tasks/runs/r',
      '/v1beta/findall/runs/f',
      '/rules/r',
      '/v1/monitors/%',
      '/v1/monitors/%E0%A4',
    ),
  ),
  type: fc.constantFrom(...TYPES),
  time: fc.oneof(fc.constant(null), text),
  data,
  received: fc.constant('2026-01-01T00:00:00.000Z'),
  via: fc.constantFrom('poll', 'stream', 'webhook', 'process', 'log', 'app'),
  position: fc.constant('1'),
  recorded: fc.integer({ min: 0, max: 4_102_444_800_000 }),
  revision: fc.integer({ min: 1, max: 3 }),
  backfill: fc.boolean(),
})

describe.each(Object.entries(dashboardViews))('the view %s', (_, { definition }) => {
  it('takes any entries, and makes rows that fit', () => {
    const { key, event, where, types } = viewProcess(definition)
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 4 }), (given) => {
        const rows = new Map<string, unknown>()
        for (const each of given) {
          // As a log gives it: entries may be made by programs, with any data.
          const read: Entry = JSON.parse(JSON.stringify(each))
          if (types !== undefined && !types.includes(read.type)) continue
          if (where !== undefined && !where(read)) continue
          for (const name of [key(read) ?? []].flat()) {
            expect(name.length).toBeLessThanOrEqual(MAX_KEY)
            definition.source?.(rowPath(name))
            const context = {
              key: name,
              complete: true,
              now: () => read.recorded,
              set: (state: unknown) => void rows.set(name, JSON.parse(JSON.stringify(state))),
              timer: () => {},
              cancel: () => {},
              append: () => {},
            }
            event(rows.get(name) ?? null, read, context)
            expect(Buffer.byteLength(JSON.stringify(rows.get(name)))).toBeLessThanOrEqual(MAX_STATE)
          }
        }
      }),
      { numRuns: 300 },
    )
  })
})
