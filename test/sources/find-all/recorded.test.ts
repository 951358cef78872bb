import { createClient, findAllSource } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { lastValueFrom, of, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { entriesOf } from '../../log/entries.ts'
import { answer, openStream, queryOf, serve, sse } from '../../support/serve.ts'
import { eventsOf, findAllRun, isStream, sendAfter, service } from './find-all-log.ts'

async function clientOf(listener: (request: IncomingMessage, response: ServerResponse) => void) {
  return createClient({ apiKey: 'key', baseUrl: await serve(listener), initialDelay: 0, maxDelay: 1 })
}

describe('client.watch with findAlls', () => {
  it('emits the events of a run, and those of its webhooks once', async () => {
    const log = eventsOf(2)
    const client = await clientOf(service(log))
    const webhook = { type: 'findall.run.completed', timestamp: '', data: findAllRun(2, 1, false) }
    const deliveries = of({ id: 'd', timestamp: 0, payload: webhook })

    const events = await lastValueFrom(
      client.watch({ findAlls: ['f'], webhooks: { deliveries } }).pipe(toArray()),
    )

    expect(events).toHaveLength(log.length)
    expect(events.filter(({ via }) => via === 'webhook')).toHaveLength(1)
  })

  it('reports a run that the service does not know, and goes on with the others', async () => {
    const respond = service(eventsOf(1))
    const client = await clientOf((request, response) =>
      request.url?.includes('/none') ? answer(response, { detail: 'none' }, 404) : respond(request, response),
    )

    const events = await lastValueFrom(client.watch({ findAlls: ['none', 'f'] }).pipe(toArray()))

    expect(events.filter(({ type }) => type === 'source.failed')).toMatchObject([
      { source: findAllSource('none') },
    ])
    expect(events).toHaveLength(5)
  })

  it.each<[string, object]>([
    ['an empty id', { findAlls: [''] }],
    ['an unknown option', { findAlls: [{ id: 'f', after: 'x' }] }],
  ])('refuses %s at the call', (_, options) => {
    const client = createClient({ apiKey: 'key', baseUrl: 'http://127.0.0.1:1' })

    expect(() => client.watch(options)).toThrow(/findAlls\[0\]/)
  })
})

describe('log.record with findAlls', () => {
  it('resumes after the last recorded event, and does not ask for a run again that is over', async () => {
    const log = eventsOf(3)
    const positions: (string | null)[] = []
    let requests = 0
    let isOpen = true
    const client = await clientOf((request, response) => {
      requests += 1
      if (!isStream(request)) return answer(response, findAllRun(3, 1, false))
      positions.push(queryOf(request).get('last_event_id'))
      if (!isOpen) return sendAfter(request, response, log)
      openStream(response)
      response.write(log.slice(0, 4).map(sse).join(''))
    })
    const root = memoryStore()
    const first = await openLog(root.connect())
    const recording = first.record({ client, findAlls: ['f'] })
    const four = new Promise<void>((resolve) => {
      let count = 0
      const consumer = first.consume(
        'counter',
        { types: ['findall.status', 'findall.candidate.generated', 'findall.candidate.unmatched'] },
        () => {
          count += 1
          if (count === 4) resolve()
        },
      )
      consumer.done.catch(() => {})
    })
    await four
    recording.stop()
    await recording.done
    await first.close()

    isOpen = false
    await using second = await openLog(root.connect())
    await second.record({ client, findAlls: ['f'] }).done
    const asked = requests
    await second.record({ client, findAlls: ['f'] }).done

    expect(positions).toEqual([null, log[3]?.event_id])
    expect(requests).toBe(asked)
    const entries = (await entriesOf(second)).filter(({ type }) => type.startsWith('findall.'))
    expect(entries.map(({ data }) => data)).toEqual(log)
  })

  it('asks for a run that is over again with until: closed', async () => {
    const log = eventsOf(1)
    let requests = 0
    const respond = service(log)
    const client = await clientOf((request, response) => {
      requests += 1
      respond(request, response)
    })
    await using store = await openLog(memoryStore())
    await store.record({ client, findAlls: ['f'] }).done
    const before = requests

    const recording = store.record({ client, findAlls: [{ id: 'f', until: 'closed' }] })
    await expect.poll(() => requests).toBeGreaterThan(before)
    recording.stop()
    await recording.done
  })
})
