import { describe, expect, it } from 'vitest'
import { createClient } from 'rivulet'
import { all } from '../../e2e/research.ts'
import { answer, openStream, serve, sse } from '../../support/serve.ts'

interface Failed {
  /** The `error` in the stream; left out if undefined. */
  readonly error?: unknown
  readonly modified_at?: unknown
  /** The `error` of the run when it is read; undefined for a 404. */
  readonly read?: unknown
}

/** A client of a service with a group of these failed runs: their ids are r0, r1 and so on. */
async function failedRuns(runs: readonly Failed[]) {
  const requests: string[] = []
  let reading = 0
  let mostReading = 0
  const runOf = (index: number, error: unknown) => ({
    run_id: `r${index}`,
    status: 'failed',
    is_active: false,
    processor: 'p',
    created_at: null,
    modified_at: runs[index]?.modified_at ?? null,
    error,
  })
  const baseUrl = await serve((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const [, index] = /runs\/r(\d+)$/.exec(pathname) ?? []
    if (index !== undefined) {
      requests.push(`r${index}`)
      mostReading = Math.max(mostReading, ++reading)
      const read = runs[Number(index)]?.read
      response.on('finish', () => (reading -= 1))
      const problem = { type: 'error', error: { ref_id: 'r', message: 'not found' } }
      return setImmediate(() =>
        read === undefined ? answer(response, problem, 404) : answer(response, runOf(Number(index), read)),
      )
    }
    if (pathname.endsWith('/runs')) {
      openStream(response)
      const events = runs.map(({ error }, n) => ({
        type: 'task_run.state',
        event_id: String(n),
        run: runOf(n, error),
      }))
      return response.end(events.map(sse).join(''))
    }
    const counts = { failed: runs.length }
    const status = { num_task_runs: runs.length, task_run_status_counts: counts, is_active: false }
    return answer(response, {
      taskgroup_id: 'g',
      status: { ...status, status_message: '', modified_at: 'm' },
    })
  })
  const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })
  return { errors: () => client.taskGroups.errors('g'), requests, most: () => mostReading }
}

const UUID = '7fc2d0b2-f925-4298-a684-a076232bbd7b'

describe('errors of a group', () => {
  it.each([
    [
      { message: `${UUID} and trun_0a1b2c3d4e and DEADBEEF01 and 123456 in r0` },
      null,
      '… and … and … and … in …',
    ],
    [{ message: 'HTTP 429 from gpt-4o after 30 s: source_urls, decade, 2026-11-28' }, null, undefined],
    [{ message: 'x', details: { type: 'timeout' } }, 'timeout', 'x'],
    [{ message: 'x', details: [1], detail: { code: 'quota', type: 7 } }, 'quota', 'x'],
    [{ message: { nested: true }, details: { type: 'timeout' } }, 'timeout', null],
    [{ message: `${'y'.repeat(600)}` }, null, 'y'.repeat(500)],
    [{ message: `${'y'.repeat(499)}😀 z` }, null, 'y'.repeat(499)],
    [{ message: 'a', details: { type: `${'k'.repeat(499)}😀` } }, 'k'.repeat(499), 'a'],
    ['text', null, null],
    [[], null, null],
  ])('describes the error %j by the kind %j and the message %j', async (error, kind, message) => {
    const { errors } = await failedRuns([{ error }])

    const expected = message === undefined ? Object(error).message : message
    expect((await errors()).errors).toMatchObject([{ kind, message: expected, count: 1, run_ids: ['r0'] }])
  })

  it('has the earliest and the latest time, in whatever order and form they come', async () => {
    const error = { message: 'x' }
    const times = [null, '2026-01-02T00:00:00Z', 'noon', '2026-01-01T00:00:00Z', '2026-01-03T00:00:00Z', 7]
    const { errors } = await failedRuns(times.map((modified_at) => ({ error, modified_at })))

    expect((await errors()).errors).toMatchObject([
      {
        count: 6,
        first: '2026-01-01T00:00:00Z',
        last: '2026-01-03T00:00:00Z',
        run_ids: ['r0', 'r1', 'r2', 'r3', 'r4'],
      },
    ])
  })

  it('keeps 100 errors and counts the runs of others', async () => {
    const messages = Array.from({ length: 130 }, (_, n) => `error ${n}`)
    const { errors } = await failedRuns([...messages, 'error 0'].map((message) => ({ error: { message } })))

    const { failed, errors: known, others } = await errors()

    expect([failed, known.length, others]).toEqual([131, 100, 30])
    expect(known[0]).toMatchObject({ message: 'error 0', count: 2 })
  })

  it('reads the runs whose error the stream leaves out, one after the other', async () => {
    const runs = Array.from({ length: 20 }, (_, n) => ({ read: { message: n === 7 ? 'other' : 'read' } }))
    const { errors, requests, most } = await failedRuns([
      ...runs,
      { error: null },
      { error: { message: 'other' } },
    ])

    const emitted = await all(errors())

    expect(emitted.at(-1)?.errors.map(({ message, count }) => [message, count])).toEqual([
      ['read', 19],
      ['other', 2],
      [null, 1],
    ])
    expect(emitted.map(({ failed }) => failed)).toEqual(Array.from({ length: 22 }, (_, n) => n + 1))
    expect(requests).toEqual(Array.from({ length: 21 }, (_, n) => `r${n}`))
    expect(most()).toBe(1)
  })
})
