import { ManualClock } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { HeldProcessor } from '../running.ts'
import { asFindAll, brief, ENRICHMENT, findAllService } from './caller.ts'

describe('the events of a FindAll run', () => {
  it('are the same on each connection, and resume after any of them', async () => {
    const service = await findAllService()
    const id = await service.create()
    const events = await service.events(id)
    const again = await service.events(id, '?last_event_id=')

    expect(again).toEqual(events)
    for (const [index, event] of events.entries()) {
      expect(await service.events(id, `?last_event_id=${event.id}`)).toEqual(events.slice(index + 1))
    }
  })

  it('have the metrics of their time', async () => {
    const service = await findAllService()
    const id = await service.create()
    const events = await service.events(id)
    const metrics = events.flatMap(({ data }) => data.data.status?.metrics ?? [])

    expect(metrics.at(0)).toEqual({ generated_candidates_count: 0, matched_candidates_count: 0 })
    expect(metrics.at(-1)).toEqual({
      generated_candidates_count: events.filter(({ event }) => event === 'findall.candidate.generated')
        .length,
      matched_candidates_count: events.filter(({ event }) => event === 'findall.candidate.matched').length,
    })
  })

  it('after an event of another run, after one that was not sent, and after another text are a 422', async () => {
    const service = await findAllService()
    const [id, other] = [await service.create(), await service.create()]
    const events = await service.events(id)
    const ids = [`${other}:1`, `${id}:${events.length + 1}`, `${id}:-1`, `${id}:01`, 'x', "' OR 1=1 --"]
    const answers = await Promise.all(
      ids.map((last) => service.get(`/runs/${id}/events?last_event_id=${encodeURIComponent(last)}`)),
    )

    expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 422))
  })

  it('include the status every 10 s while nothing happens, with the id of the last event', async () => {
    const clock = new ManualClock()
    const processor = new HeldProcessor()
    const service = await findAllService({ processor, clock })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    const held = await processor.next()
    const { last_event_id: last } = await service.result(id)
    const stream = await service.stream(id, `?last_event_id=${last}`)
    clock.advance(10_000)
    const first = await stream.next()
    clock.advance(10_000)
    const second = await stream.next()
    held.complete()
    const next = await processor.next()
    next.complete()
    const rest = asFindAll(await stream.rest())

    expect(first?.id).toBe(last)
    expect(first?.data).toMatchObject({
      type: 'findall.status',
      event_id: last,
      timestamp: '2026-01-01T00:00:10.000Z',
    })
    expect(second).toEqual({ ...first, data: { ...first?.data, timestamp: '2026-01-01T00:00:20.000Z' } })
    expect(brief(rest).at(-1)).toBe('status completed')
    expect(rest.every((event) => event.id !== last)).toBe(true)
  })

  it('end cleanly after the timeout, while the run is active', async () => {
    const clock = new ManualClock()
    const processor = new HeldProcessor()
    const service = await findAllService({ processor, clock })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    await processor.next()
    const stream = await service.stream(id, '?timeout=25')
    await stream.next()
    clock.advance(25_000)
    const events = asFindAll(await stream.rest())

    // The run may have completed before the enrichment made it active again.
    const statuses = brief(events).filter((text) => text.startsWith('status '))
    expect(statuses.at(-1)).not.toBe('status completed')
  })

  it('are cut, repeated and damaged by the faults of streams', async () => {
    const service = await findAllService()
    const { faults } = service.caller.service
    const id = await service.create()
    const events = await service.events(id)
    const path = '/v1beta/findall'
    faults.add({ kind: 'cut', path, after: 2, times: 1 })
    const cut = await (await service.stream(id)).untilBroken()
    faults.add({ kind: 'repeat-events', path, count: 2, times: 1 })
    const repeated = await service.events(id, `?last_event_id=${events[2]?.id}`)
    faults.add({ kind: 'close', path, after: 3, times: 1 })
    const closed = await service.events(id)

    expect(cut).toEqual(events.slice(0, 2))
    expect(repeated).toEqual(events.slice(1))
    expect(closed).toEqual(events.slice(0, 3))
  })
})
