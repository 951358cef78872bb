import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Monitor } from 'rivulet'
import { describe, expect, it, vi } from 'vitest'
import { corpusOf, folderOf, write } from '../corpus/folder.ts'
import { BATTERY, startMonitors, startMonitorsOver, summaries } from './service.ts'

const HOUR = 3_600_000

const BACKFILL = { ...BATTERY, settings: { ...BATTERY.settings, include_backfill: true } }

const ALL_WEBHOOKS = {
  url: 'http://127.0.0.1:9/hook',
  event_types: ['monitor.event.detected', 'monitor.execution.completed', 'monitor.execution.failed'],
}

describe('the first execution', () => {
  it('reports no existing passages, only a completion', async () => {
    const { corpus, create, events, get, clock } = await startMonitors()
    corpus.put('https://example.org/old', ['solid battery'])

    const id = await create()

    const timestamp = new Date(clock.now()).toISOString()
    expect(await events(id)).toEqual([{ event_type: 'completion', timestamp }])
    expect((await get<Monitor>(`/${id}`)).body.last_run_at).toBe(timestamp)
  })

  it('reports documents added between the creation and the execution', async () => {
    const { corpus, post, monitors, events } = await startMonitors()
    corpus.put('https://example.org/old', ['solid battery old'])
    const search = corpus.passages.bind(corpus)
    vi.spyOn(corpus, 'passages').mockImplementationOnce((query) => {
      const found = search(query)
      corpus.put('https://example.org/new', ['solid battery new'])
      return found
    })

    const { body } = await post<Monitor>('', BATTERY)
    await monitors.settled()

    expect(summaries(await events(body.monitor_id))).toEqual(['solid battery new'])
  })

  it('reports with include_backfill the ten most recent matches, and no others later', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    for (let day = 10; day <= 24; day++) {
      corpus.put(`https://example.org/${day}`, [`solid battery of day ${day}`], `2025-06-${day}`)
    }
    corpus.put('https://example.org/undated', ['solid battery without a date'])

    const id = await create(BACKFILL)
    await advance(HOUR)

    const days = Array.from({ length: 10 }, (_, n) => `solid battery of day ${24 - n}`)
    expect(summaries(await events(id))).toEqual(['completion', ...days])
  })

  it('reports a completion when include_backfill finds nothing', async () => {
    const { create, events } = await startMonitors()

    const id = await create(BACKFILL)

    expect(summaries(await events(id))).toEqual(['completion'])
  })

  it('leaves the backfill to the next one when it fails', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    corpus.put('https://example.org/old', ['solid battery'])
    corpus.failure = new Error('no disk')
    const id = await create(BACKFILL)

    corpus.failure = undefined
    await advance(HOUR)

    expect(summaries(await events(id))).toEqual(['solid battery', 'error'])
  })

  it('does not report existing passages later when it fails', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    corpus.put('https://example.org/old', ['solid battery'])
    corpus.failure = new Error('no disk')
    const id = await create()

    corpus.failure = undefined
    await advance(HOUR)

    expect(summaries(await events(id))).toEqual(['completion', 'error'])
  })
})

describe('an execution', () => {
  it('reports each new passage once, with its date, its text and its source', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    const id = await create()
    corpus.put('https://example.org/a', ['A solid battery.', 'Something else.'], '2026-01-02')

    await advance(HOUR)
    await advance(HOUR)

    const [completion, event, ...rest] = await events(id)
    expect(completion?.event_type).toBe('completion')
    expect(event).toEqual({
      event_type: 'event_stream',
      event_id: expect.stringMatching(/^mevt_[0-9a-f]{32}$/),
      event_group_id: expect.stringMatching(/^mevtgrp_[0-9a-f]{32}$/),
      event_date: '2026-01-02',
      output: {
        type: 'text',
        content: 'A solid battery.',
        basis: [
          {
            field: 'output',
            reasoning: expect.stringContaining('"solid battery"'),
            citations: [
              {
                url: 'https://example.org/a',
                title: 'Title of https://example.org/a',
                excerpts: ['A solid battery.'],
              },
            ],
            confidence: 'high',
          },
        ],
      },
    })
    expect(summaries(rest)).toEqual(['completion'])
  })

  it('reports a changed passage, and not adjacent ones', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    corpus.put('https://example.org/a', ['First solid battery.', 'Second solid battery.'])
    const id = await create()

    corpus.put('https://example.org/a', ['First solid battery.', 'Second solid battery, changed.'])
    await advance(HOUR)

    const [event] = await events(id)
    expect(summaries(await events(id))).toEqual(['Second solid battery, changed.', 'completion'])
    expect(event).toMatchObject({
      event_date: null,
      output: { basis: [{ reasoning: expect.stringContaining('a document that had matched before') }] },
    })
  })

  it('does not report a passage again that was removed and restored', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    corpus.put('https://example.org/a', ['solid battery'])
    const id = await create()

    corpus.remove('https://example.org/a')
    await advance(HOUR)
    corpus.put('https://example.org/a', ['solid battery'])
    await advance(HOUR)

    expect(summaries(await events(id))).toEqual(['completion', 'completion', 'completion'])
  })

  it('uses one event_group_id for all its events', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    const id = await create()
    corpus.put('https://example.org/a', ['solid battery 1', 'solid battery 2'])
    await advance(HOUR)
    corpus.put('https://example.org/b', ['solid battery 3'])
    await advance(HOUR)

    const groups = (await events(id)).flatMap((event) =>
      'event_group_id' in event ? [event.event_group_id] : [],
    )

    expect(groups).toHaveLength(3)
    expect(groups[1]).toBe(groups[2])
    expect(groups[0]).not.toBe(groups[1])
  })

  it('follows the output schema', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    const json_schema = { type: 'object', properties: { url: { type: 'string' }, text: { type: 'string' } } }
    const id = await create({
      ...BATTERY,
      settings: { query: 'battery', output_schema: { type: 'json', json_schema } },
    })
    corpus.put('https://example.org/a', ['A battery.'])

    await advance(HOUR)

    expect((await events(id))[0]).toMatchObject({
      output: {
        type: 'json',
        content: { url: 'https://example.org/a', text: 'A battery.' },
        basis: [{ field: 'url' }, { field: 'text' }],
      },
    })
  })

  it('searches for all words of the query in the allowed sources', async () => {
    const { corpus, create } = await startMonitors()
    const source_policy = { include_domains: ['example.org'] }

    await create({
      ...BATTERY,
      processor: 'base',
      settings: { query: 'q', advanced_settings: { source_policy } },
    })

    expect(corpus.queries.at(-1)).toEqual({
      queries: ['q'],
      match: 'all',
      sourcePolicy: source_policy,
      limit: 10_000,
    })
  })

  it('warns of more matches than its processor compares', async () => {
    const { corpus, create, page } = await startMonitors()
    corpus.put(
      'https://example.org/long',
      Array.from({ length: 1_001 }, (_, n) => `solid battery ${n}`),
    )
    const id = await create()

    const { warnings } = await page(id, 'include_completions=true')

    expect(warnings).toMatchObject([{ type: 'warning', message: expect.stringContaining('1000') }])
  })

  it('warns that a location has no effect', async () => {
    const { corpus, create, page } = await startMonitors()
    corpus.put('https://example.org/q', ['q'])
    const id = await create({ ...BATTERY, settings: { query: 'q', advanced_settings: { location: 'CH' } } })

    const { warnings } = await page(id, 'include_completions=true')

    expect(warnings).toMatchObject([
      { type: 'input_validation_warning', message: expect.stringContaining('location') },
    ])
  })

  it('that fails is an error event, and the next one reports what it missed', async () => {
    const { corpus, create, events, advance, clock } = await startMonitors()
    const id = await create()
    corpus.put('https://example.org/a', ['solid battery'])
    corpus.failure = new Error('no disk')
    await advance(HOUR)
    const timestamp = new Date(clock.now()).toISOString()
    expect(await events(id, '')).toEqual([{ event_type: 'error', error_message: 'no disk', timestamp }])

    corpus.failure = undefined
    await advance(HOUR)

    expect(summaries(await events(id))).toEqual(['solid battery', 'error', 'completion'])
  })

  it('has a unique time even if another one ended in the same millisecond', async () => {
    const { create, trigger, events } = await startMonitors()
    const id = await create()
    await trigger(id)
    await trigger(id)

    const times = (await events(id)).map((event) => ('timestamp' in event ? Date.parse(event.timestamp) : 0))

    const [first = 0] = times.toReversed()
    expect(times).toEqual([first + 2, first + 1, first])
  })
})

describe('the schedule', () => {
  it('runs a monitor at its frequency', async () => {
    const { create, events, advance } = await startMonitors()
    const id = await create({ ...BATTERY, frequency: '1d' })

    await advance(24 * HOUR - 1)
    expect(await events(id)).toHaveLength(1)
    await advance(1)
    expect(await events(id)).toHaveLength(2)
    await advance(24 * HOUR)
    expect(await events(id)).toHaveLength(3)
  })

  it('runs each monitor at its own frequency', async () => {
    const { create, events, advance } = await startMonitors()
    const hourly = await create()
    const everyOtherHour = await create({ ...BATTERY, frequency: '2h' })

    await advance(HOUR)
    await advance(HOUR)

    expect(await events(hourly)).toHaveLength(3)
    expect(await events(everyOtherHour)).toHaveLength(2)
  })

  it('makes up for missed times with one execution, and keeps the schedule', async () => {
    const { create, events, clock, advance } = await startMonitors()
    const id = await create()
    const createdAt = clock.now()

    await advance(3.5 * HOUR)

    expect(await events(id)).toHaveLength(2)
    expect(clock.next).toBe(createdAt + 4 * HOUR)
  })

  it('runs a monitor once at a time, and once more for any number of triggers during an execution', async () => {
    const { create, post, corpus, monitors, events } = await startMonitors()
    const id = await create()
    const before = corpus.queries.length
    const release = corpus.hold()

    for (const _ of [1, 2, 3, 4]) expect((await post(`/${id}/trigger`)).status).toBe(204)
    expect(corpus.queries).toHaveLength(before)
    release()
    await monitors.settled()

    expect(corpus.queries).toHaveLength(before + 2)
    expect(await events(id)).toHaveLength(3)
  })

  it('runs other monitors while one is busy', async () => {
    const { create, post, corpus, monitors, events } = await startMonitors()
    const [busy, other] = [await create(), await create()]
    const release = corpus.hold()
    await post(`/${busy}/trigger`)
    await post(`/${other}/trigger`)

    release()
    await monitors.settled()

    expect([await events(busy), await events(other)].map(({ length }) => length)).toEqual([2, 2])
  })

  it('pauses when the database fails, reports it, and loses nothing', async () => {
    const onError = vi.fn<(error: unknown) => void>()
    const { create, trigger, corpus, database, events, advance } = await startMonitors({ onError })
    const id = await create()
    corpus.put('https://example.org/a', ['solid battery'])
    database.exec(
      "CREATE TRIGGER full BEFORE INSERT ON monitor_events BEGIN SELECT raise(ABORT, 'disk full'); END",
    )
    await trigger(id)
    expect(onError.mock.calls).toMatchObject([[{ message: 'disk full' }]])

    database.exec('DROP TRIGGER full')
    await advance(5_000)

    expect(summaries(await events(id))).toEqual(['solid battery', 'completion'])
  })
})

describe('a document whose passages are split differently', () => {
  /** Paragraphs of which every `step`th has the words of the query; a few of them make a passage. */
  const paragraphs = (step: number) =>
    Array.from({ length: 20 }, (_, n) => {
      const topic = n % step === 0 ? 'a solid battery' : 'some other cell'
      return `Paragraph ${n} is about ${topic} that was measured in the laboratory number ${n}. It went on for a while.`
    })

  it.each([1, 3])(
    'reports one added paragraph at the top, with a match in every paragraph by %i',
    async (step) => {
      const docs = await folderOf({ 'a.md': paragraphs(step).join('\n\n') })
      const corpus = await corpusOf({}, { folders: [docs] })
      const { create, events, trigger } = await startMonitorsOver(corpus)
      const id = await create()

      const news = paragraphs(1)[0]?.replace('Paragraph 0', 'News') ?? ''
      await write(docs, { 'a.md': [news, ...paragraphs(step)].join('\n\n') })
      await trigger(id)

      expect(summaries(await events(id))).toEqual([expect.stringContaining(news), 'completion'])
    },
  )

  it('reports one new line of a long list', async () => {
    const list = Array.from(
      { length: 60 },
      (_, n) => `- solid battery of type ${n}, measured at ${n} degrees`,
    )
    const docs = await folderOf({ 'a.md': list.join('\n') })
    const corpus = await corpusOf({}, { folders: [docs] })
    const { create, events, trigger } = await startMonitorsOver(corpus)
    const id = await create()

    await write(docs, { 'a.md': ['- solid battery of a new type', ...list].join('\n') })
    await trigger(id)

    expect(summaries(await events(id))).toEqual([expect.stringContaining('of a new type'), 'completion'])
  })

  it('reports every distinct passage of a new document', async () => {
    const docs = await folderOf({})
    const corpus = await corpusOf({}, { folders: [docs] })
    const { create, events, trigger } = await startMonitorsOver(corpus)
    const id = await create()

    await write(docs, { 'a.md': '# First\n\nA solid battery.\n\n# Second\n\nA solid battery, but better.' })
    await trigger(id)

    expect(summaries(await events(id))).toHaveLength(3)
  })
})

describe('a folder of documents that is temporarily missing', () => {
  it('is an error of the monitor, and not reported as new when it is back', async () => {
    const parent = await folderOf({ 'docs/a.md': 'A solid battery.' })
    const docs = join(parent, 'docs')
    const { create, events, trigger } = await startMonitorsOver(await corpusOf({}, { folders: [docs] }))
    const id = await create()

    await rename(docs, join(parent, 'elsewhere'))
    await trigger(id)
    await rename(join(parent, 'elsewhere'), docs)
    await trigger(id)

    const found = await events(id)
    expect(summaries(found)).toEqual(['completion', 'error', 'completion'])
    expect(found[1]).toMatchObject({ error_message: expect.stringContaining('cannot be read') })
  })
})

describe('monitors that are due together', () => {
  it('run a few at a time, and yield to the event loop', async () => {
    const { corpus, create, events, advance } = await startMonitors()
    const ids: string[] = []
    for (let n = 0; n < 12; n++) ids.push(await create())
    let turn = 0
    let counting = true
    const count = () => {
      turn += 1
      if (counting) setImmediate(count)
    }
    const turns: number[] = []
    const search = corpus.passages.bind(corpus)
    vi.spyOn(corpus, 'passages').mockImplementation((query) => {
      turns.push(turn)
      return search(query)
    })

    count()
    await advance(HOUR)
    counting = false

    const together = turns.map((one) => turns.filter((other) => other === one).length)
    expect(turns).toHaveLength(12)
    expect(Math.max(...together)).toBeLessThanOrEqual(4)
    for (const id of ids) expect(summaries(await events(id))).toEqual(['completion', 'completion'])
  })
})

describe('the webhook of a monitor', () => {
  it('reports events by their group, completions and errors, with the metadata', async () => {
    const { corpus, create, events, advance, posted } = await startMonitors()
    const metadata = { team: 'cells' }
    const id = await create({ ...BATTERY, webhook: ALL_WEBHOOKS, metadata })
    corpus.put('https://example.org/a', ['solid battery 1', 'solid battery 2'])
    await advance(HOUR)
    corpus.failure = new Error('no disk')
    await advance(HOUR)

    const [error, event, , completion] = await events(id)
    if (error?.event_type !== 'error' || completion?.event_type !== 'completion')
      throw new Error('other events')
    const group = event !== undefined && 'event_group_id' in event ? event.event_group_id : ''
    const event_group_id = expect.stringMatching(/^mevtgrp_/)
    expect(posted.map(({ url }) => url)).toEqual([ALL_WEBHOOKS.url, ALL_WEBHOOKS.url, ALL_WEBHOOKS.url])
    expect(posted.map(({ payload }) => payload)).toEqual([
      {
        type: 'monitor.execution.completed',
        timestamp: completion.timestamp,
        data: { monitor_id: id, event: { ...completion, event_group_id }, metadata },
      },
      {
        type: 'monitor.event.detected',
        timestamp: '2026-01-01T01:00:00.000Z',
        data: { monitor_id: id, event: { event_group_id: group }, metadata },
      },
      {
        type: 'monitor.execution.failed',
        timestamp: error.timestamp,
        data: { monitor_id: id, event: { ...error, event_group_id }, metadata },
      },
    ])
  })

  it('gets only its event types', async () => {
    const { corpus, create, advance, posted } = await startMonitors()
    await create({ ...BATTERY, webhook: { ...ALL_WEBHOOKS, event_types: ['monitor.event.detected'] } })
    corpus.put('https://example.org/a', ['solid battery'])
    await advance(HOUR)

    expect(posted.map(({ payload }) => payload.type)).toEqual(['monitor.event.detected'])
    expect(posted[0]?.payload.data).not.toHaveProperty('metadata')
  })
})
