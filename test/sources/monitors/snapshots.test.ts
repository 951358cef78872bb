import { lastValueFrom, take, toArray } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { ArgumentError, createClient, OutputSchemaError } from 'rivulet'
import type { MonitorSnapshot, Source } from 'rivulet'
import { answer, serve } from '../../support/serve.ts'

const json = (content: unknown, fields: readonly string[] = []) => ({
  type: 'json',
  content,
  basis: fields.map((field) => ({ field, reasoning: JSON.stringify(content) })),
})
const text = (content: string) => ({ type: 'text', content, basis: [] })
const event = (n: number, previous_output: unknown, changed_output: unknown) => ({
  event_type: 'snapshot',
  event_id: `e${n}`,
  event_group_id: `g${n}`,
  event_date: null,
  previous_output,
  changed_output,
})

/** A client of a cancelled monitor with these events, oldest first. */
async function monitorOf(...events: readonly object[]) {
  const baseUrl = await serve((request, response) =>
    (request.url ?? '').includes('/events')
      ? answer(response, { events: events.toReversed() })
      : answer(response, { monitor_id: 'm', type: 'snapshot', status: 'cancelled' }),
  )
  return createClient({ baseUrl, apiKey: 'key' })
}

/** The status of the monitor is requested after a poll without events. */
const fast = { pollInterval: 1 }

const all = <T>(source: Source<T>) => lastValueFrom(source.pipe(toArray()))

describe('the snapshots of a monitor', () => {
  it('are the previous output with the changed fields and their basis', async () => {
    const previous = json({ ceo: 'Ann', staff: [{ name: 'A' }], seat: 'Rome' }, [
      'ceo',
      'staff',
      'staff.0.name',
      'seat',
    ])
    const changed = json({ ceo: 'Bo', staff: [] }, ['ceo', 'staff'])
    const client = await monitorOf(event(1, previous, changed))

    const [snapshot, ...others] = await all(client.monitors.snapshots('m', fast))

    expect(others).toEqual([])
    expect(snapshot).toMatchObject({ changed, previous, event: { id: 'e1', cursor: 'e1' } })
    expect(snapshot?.current).toEqual({
      type: 'json',
      content: { ceo: 'Bo', staff: [], seat: 'Rome' },
      basis: [
        { field: 'seat', reasoning: JSON.stringify(previous.content) },
        { field: 'ceo', reasoning: JSON.stringify(changed.content) },
        { field: 'staff', reasoning: JSON.stringify(changed.content) },
      ],
    })
  })

  it('come oldest first, without the other events of the monitor, until it is cancelled', async () => {
    const failure = { event_type: 'error', error_message: 'no credit', timestamp: '2026-01-01T00:00:00Z' }
    const client = await monitorOf(event(1, text('a'), text('b')), failure, event(2, text('b'), text('c')))

    const snapshots = await all(client.monitors.snapshots('m', fast))

    expectTypeOf(snapshots).toEqualTypeOf<MonitorSnapshot[]>()
    expect(snapshots.map(({ previous, current }) => [previous?.content, current?.content])).toEqual([
      ['a', 'b'],
      ['b', 'c'],
    ])
  })

  it('have no field in the current output of which only the basis has changed', async () => {
    const changed = json({ staff: 2 }, ['staff', 'ceo'])
    const client = await monitorOf(event(1, json({ ceo: 'Ann', staff: 1, seat: 'Rome' }), changed))

    const [snapshot] = await all(client.monitors.snapshots('m', fast))

    expect(snapshot?.current?.content).toEqual({ staff: 2, seat: 'Rome' })
  })

  it('go on after the event of an earlier snapshot', async () => {
    const client = await monitorOf(event(1, text('a'), text('b')), event(2, text('b'), text('c')))
    const [first] = await lastValueFrom(client.monitors.snapshots('m', fast).pipe(take(1), toArray()))

    const after = first?.event.cursor ?? ''
    const rest = await all(client.monitors.snapshots('m', { ...fast, after }))

    expect(rest.map(({ event: { id } }) => id)).toEqual(['e2'])
  })

  it.each([
    ['a text after fields', json({ a: 1 }), text('whole'), text('whole')],
    ['a text after nothing', null, text('whole'), text('whole')],
    ['fields after a text', text('x'), json({ a: 1 }), null],
    ['fields after nothing', undefined, json({ a: 1 }), null],
    ['nothing', json({ a: 1 }), null, null],
    ['content that is not of its type', json({ a: 1 }), json([1]), null],
    ['an unknown type', json({ a: 1 }), { type: 'table', content: {} }, null],
    [
      'a basis that is no list',
      { ...json({ a: 1 }), basis: null },
      { ...json({ b: 2 }), basis: 'x' },
      json({ a: 1, b: 2 }),
    ],
  ])(
    'have the current output for %s, and null where it is not known',
    async (_, previous, changed, current) => {
      const client = await monitorOf(event(1, previous, changed))

      const [snapshot] = await all(client.monitors.snapshots('m', fast))

      expect(snapshot?.current).toEqual(current)
    },
  )

  it('do not lose a field whose name has a dot, and have no prototype from the service', async () => {
    const changed = JSON.parse('{"type":"json","content":{"a.b":2,"__proto__":{"x":1}},"basis":[]}')
    const client = await monitorOf(event(1, json({ 'a.b': 1, c: 1 }, ['a.b', 'c']), changed))

    const [snapshot] = await all(client.monitors.snapshots('m', fast))

    expect(Object.keys(Object(snapshot?.current?.content))).toEqual(['a.b', 'c', '__proto__'])
    expect(snapshot?.current?.basis.map(({ field }) => field)).toEqual(['c'])
    expect(Object(snapshot?.current?.content).x).toBeUndefined()
  })

  const Company = z.object({ ceo: z.string(), staff: z.number() })
  const later = {
    jsonSchema: {},
    schema: {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value: unknown) => {
          await new Promise((resolve) => setImmediate(resolve))
          return Company['~standard'].validate(value)
        },
      },
    },
  } as const

  it.each([
    ['a synchronous', Company],
    ['an asynchronous', later],
  ])('are validated and typed by %s schema, in their order', async (_, schema) => {
    const client = await monitorOf(
      event(1, json({ ceo: 'Ann', staff: 1 }), json({ staff: 2 })),
      event(2, json({ ceo: 'Ann', staff: 2 }), json({ staff: 'many' })),
      event(3, json({ ceo: 'Ann', staff: 'many' }), json({ staff: 3 })),
      event(4, null, null),
    )

    const snapshots = await all(client.monitors.snapshots('m', { ...fast, schema: schema as typeof Company }))

    expectTypeOf(snapshots[0]?.current?.content.staff).toEqualTypeOf<number | undefined>()
    expect(
      snapshots.map(({ previous, current }) => [previous?.content.staff, current?.content.staff]),
    ).toEqual([
      [1, 2],
      [2, undefined],
      [undefined, 3],
      [undefined, undefined],
    ])
    expect(snapshots.map(({ misfit }) => misfit instanceof OutputSchemaError)).toEqual([
      false,
      true,
      true,
      false,
    ])
    expect(snapshots[1]?.misfit?.output).toEqual(json({ ceo: 'Ann', staff: 'many' }))
  })

  it('have options that are checked at the call', async () => {
    const client = await monitorOf()
    expect(() => client.monitors.snapshots('..')).toThrow('monitorId must be an id')
    expect(() => client.monitors.snapshots('m', { include_completions: true } as never)).toThrow(
      'no option include_completions',
    )
    expect(() => client.monitors.snapshots('m', { schema: {} as never })).toThrow('schema must be')
  })
})

describe('the update of a monitor', () => {
  async function updated() {
    const bodies: unknown[] = []
    const baseUrl = await serve(async (request, response) => {
      let body = ''
      for await (const part of request) body += String(part)
      bodies.push([request.method, request.url, JSON.parse(body)])
      answer(response, { monitor_id: 'm', status: 'active' }, bodies.length === 1 ? 503 : 200)
    })
    return { client: createClient({ baseUrl, apiKey: 'key', initialDelay: 0 }), bodies }
  }

  it('sends only what changes, null included, and may be repeated', async () => {
    const { client, bodies } = await updated()
    const settings = { advanced_settings: { location: 'de' } }

    expect(await client.monitors.update('m', { webhook: null, metadata: null })).toMatchObject({
      monitor_id: 'm',
    })
    await client.monitors.update('m', { type: 'event_stream', settings, frequency: '2d' })

    expect(bodies).toEqual([
      ['POST', '/v1/monitors/m/update', { webhook: null, metadata: null }],
      ['POST', '/v1/monitors/m/update', { webhook: null, metadata: null }],
      ['POST', '/v1/monitors/m/update', { type: 'event_stream', settings, frequency: '2d' }],
    ])
  })

  it.each([
    ['a snapshot monitor has no settings to update', { type: 'snapshot', settings: {} }],
    ['type must be event_stream', { settings: {} }],
    ['changes must be an object with at least one change', {}],
    ['changes must be an object with at least one change', { frequency: undefined }],
    ['request must be an object', null],
    ['frequency must be a frequency', { frequency: '1m' }],
    ['frequency must be', { frequency: null }],
    ['no option query', { query: 'x' }],
    ['metadata must be', { metadata: { ['k'.repeat(17)]: 'x' } }],
  ])('is refused at the call: %s', async (message, changes) => {
    const { client, bodies } = await updated()
    expect(() => client.monitors.update('m', changes as never)).toThrow(ArgumentError)
    expect(() => client.monitors.update('m', changes as never)).toThrow(message)
    expect(bodies).toEqual([])
  })
})
