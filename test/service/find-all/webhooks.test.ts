import { describe, expect, it } from 'vitest'
import { startReceiver } from '../webhooks/receiver.ts'
import { findAllService } from './caller.ts'

const ALL = [
  'findall.candidate.generated',
  'findall.candidate.matched',
  'findall.candidate.unmatched',
  'findall.candidate.enriched',
  'findall.run.completed',
]

/** A receiver, and how to wait for this many webhooks. */
async function receiver() {
  const waiting = new Map<number, () => void>()
  const { url, received } = await startReceiver((n) => {
    waiting.get(n)?.()
    return 200
  })
  const until = (count: number) =>
    received.length >= count
      ? Promise.resolve()
      : new Promise<void>((resolve) => void waiting.set(count, resolve))
  const bodies = () => received.map(({ body }) => JSON.parse(body.toString()))
  return { url, until, bodies }
}

describe('the webhooks of a FindAll run', () => {
  it('have each event of the stream, with the id of the run', async () => {
    const { url, until, bodies } = await receiver()
    const service = await findAllService()
    const id = await service.create({ webhook: { url, event_types: ALL } })
    const events = await service.events(id)
    const candidates = events.filter(({ event }) => event.startsWith('findall.candidate.'))
    await until(candidates.length + 1)
    const { run } = await service.result(id)
    const sent = bodies()

    for (const { data } of candidates) {
      expect(sent).toContainEqual({
        type: data.type,
        timestamp: data.timestamp,
        data: { ...data.data, findall_id: id },
      })
    }
    expect(sent).toContainEqual({ type: 'findall.run.completed', timestamp: run.modified_at, data: run })
    expect(sent).toHaveLength(candidates.length + 1)
  })

  it('are only of the types that were asked for', async () => {
    const { url, until, bodies } = await receiver()
    const service = await findAllService()
    const id = await service.create({ webhook: { url, event_types: ['findall.candidate.matched'] } })
    await service.events(id)
    await until(2)

    expect(bodies().map(({ type }) => type)).toEqual([
      'findall.candidate.matched',
      'findall.candidate.matched',
    ])
  })
})
