import { AuthenticationError, createClient, StreamPositionError } from 'rivulet'
import type { StreamItem } from 'rivulet'
import { BehaviorSubject, takeWhile } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { research } from '../e2e/research.ts'
import { recordingLog, settled, until } from '../log/record/recording-log.ts'
import { answer } from '../support/serve.ts'

/** Keeps events and positions as a database does: those of one item together. */
function table() {
  const positions = new Map<string, string>()
  const ids: string[] = []
  return {
    ids,
    positions,
    from: ({ name }: { readonly name: string }) => positions.get(name),
    save({ stream, event, position }: StreamItem) {
      if (event !== undefined) ids.push(event.id)
      if (position !== undefined) positions.set(stream.name, position.text())
    },
  }
}

describe('watch.positioned', () => {
  it('resumes each stream exactly after what was saved, after whichever item it is stopped', async () => {
    const { client, group, service } = await research({ client: { initialDelay: 1, maxDelay: 5 } })
    const id = await group('a', 'b', 'c', 'd')
    const whole = table()
    await client.watch.positioned({ taskGroups: [id] }).forEach(whole.save)
    expect(whole.ids.length).toBeGreaterThan(4)

    for (let stopAfter = 1; stopAfter <= 6; stopAfter++) {
      const { ids, from, save } = table()
      let isWhole = false
      while (!isWhole) {
        let items = 0
        isWhole = true
        // The service repeats events after each connection.
        service.faults.add({ kind: 'repeat-events', count: 2 })
        const stopped = client.watch.positioned({ taskGroups: [id], from }).pipe(
          takeWhile((item) => {
            save(item)
            // What moves nothing would be all that a subscription ever sees.
            if (item.event !== undefined) items += 1
            isWhole = items < stopAfter
            return isWhole
          }),
        )
        await stopped.forEach(() => {})
      }
      expect(ids.toSorted()).toEqual(whole.ids.toSorted())
    }
  })

  it('asks for the positions of a source, one after the other, each time that it comes into its list', async () => {
    const { client } = await research()
    const lists = new BehaviorSubject<readonly string[]>([])
    const asked: { readonly name: string; readonly signal: AbortSignal }[] = []
    const first = Promise.withResolvers<undefined>()
    const from = ({ name }: { readonly name: string }, signal: AbortSignal) => {
      asked.push({ name, signal })
      return asked.length === 1 ? first.promise : null
    }
    const names = () => asked.map(({ name }) => name)
    const subscription = client.watch.positioned({ taskGroups: lists, from }).subscribe()

    lists.next(['g'])
    await settled()
    expect(names()).toEqual(['groups/g/runs'])
    first.resolve(undefined)
    await until(() => asked.length === 2)
    expect(names()).toEqual(['groups/g/runs', 'groups/g/events'])
    expect(asked[0]?.signal).toBe(asked[1]?.signal)
    expect(asked[0]?.signal.aborted).toBe(false)

    lists.next([])
    expect(asked[0]?.signal.aborted).toBe(true)
    lists.next(['g'])
    await until(() => asked.length === 4)
    subscription.unsubscribe()
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true, true, true, true])
  })

  it('opens a source again when its claim was lost, after its earlier streams have ended', async () => {
    const { client, service } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const signals: AbortSignal[] = []
    let lose = () => {}
    const { ids, positions, save } = table()
    const items = client.watch.positioned({
      monitors: [{ id: 'm1', pollInterval: Infinity }],
      from({ name }, signal, reopen) {
        expect(signals.every(({ aborted }) => aborted)).toBe(true)
        signals.push(signal)
        lose = reopen
        return positions.get(name)
      },
    })
    const subscription = items.subscribe(save)
    await until(() => ids.length === 1)
    service.monitors.set('m1', ['g2', 'g1'])
    lose()
    await until(() => ids.length === 2)
    // A function of an opening that is over has no effect.
    const lost = lose
    lose()
    await until(() => signals.length === 3)
    lost()
    await settled()
    expect(signals).toHaveLength(3)
    expect(ids).toEqual(['g1-event', 'g2-event'])
    subscription.unsubscribe()
  })

  it('completes once its source is done, although the claims of both streams were lost at once', async () => {
    const { client, group } = await research()
    const id = await group('a')
    let openings = 0
    const items = client.watch.positioned({
      taskGroups: [id],
      from({ name }, _, reopen) {
        if (name.endsWith('/runs')) openings += 1
        else if (openings === 1) {
          reopen()
          reopen()
        }
        return null
      },
    })
    await items.forEach(() => {})
    expect(openings).toBe(2)
  })

  it('says when a stream is reached, lost and caught up, and marks the first walk', async () => {
    const { client, service, time } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const kinds: string[] = []
    const items = client.watch.positioned({ monitors: [{ id: 'm1', pollInterval: 1_000 }] })
    const subscription = items.subscribe(({ kind, event }) => kinds.push(event?.id ?? kind))
    await until(() => kinds.includes('caughtUp'))
    expect(kinds).toEqual(['polling', 'reached', 'g1-event', 'reached', 'caughtUp'])
    kinds.length = 0
    service.intercept = (_, response) => {
      answer(response, { message: 'not now' }, 503)
      return true
    }
    await until(() => {
      time.advance(1_000)
      return kinds.filter((kind) => kind === 'lost').length === 2
    })
    service.intercept = () => false
    await until(() => {
      time.advance(60_000)
      return kinds.includes('caughtUp')
    })
    expect([...new Set(kinds)]).toEqual(['polling', 'lost', 'reached', 'caughtUp'])
    subscription.unsubscribe()
  })

  it('errors with what `from` throws, for a position that cannot be read, and for a refused key', async () => {
    const { client, service } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const done = (from: (stream: unknown) => unknown) =>
      client.watch.positioned({ monitors: ['m1'], from: from as never }).forEach(() => {})
    const refused = new Error('the database is closed')
    await expect(done(() => Promise.reject(refused))).rejects.toBe(refused)
    await expect(
      done(() => {
        throw refused
      }),
    ).rejects.toBe(refused)
    for (const position of ['', 'garbage', '{}', 7, {}])
      await expect(done(() => position)).rejects.toThrow(StreamPositionError)
    await expect(done(() => 'garbage')).rejects.toMatchObject({ stream: 'monitors/m1' })
    expect(service.requests).toEqual([])
    service.intercept = (_, response) => {
      answer(response, { message: 'no such key' }, 401)
      return true
    }
    await expect(done(() => null)).rejects.toThrow(AuthenticationError)
  })

  it('refuses bad options at the call', () => {
    const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' })
    const { positioned } = client.watch
    expect(() => positioned({})).toThrow('watch.positioned has nothing to watch')
    expect(() => positioned({ monitors: ['m'], from: 'start' as never })).toThrow('from must be a function')
    expect(() => positioned({ monitors: ['m'], webhooks: {} } as never)).toThrow('no option webhooks')
    expect(() => positioned({ monitors: [''] })).toThrow('monitors[0]')
  })
})
