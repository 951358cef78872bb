import { describe, expect, it } from 'vitest'
import { firstValueFrom, lastValueFrom, take, toArray } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { write } from '../service/corpus/folder.ts'
import { all, HeldRuns, receiving, research } from './research.ts'
import type { Research } from './research.ts'

const note = (n: number) => ({
  [`note-${n}.md`]: `# Note ${n}\n\nThe tide gauge number ${n} measured a spring tide today.\n`,
})

/** Creates a monitor and waits for its first execution, so that a trigger starts the next one. */
async function monitorOf({ client, service }: Research, webhook?: string) {
  const created = await firstValueFrom(
    client.monitors.create({
      type: 'event_stream',
      frequency: '1h',
      settings: { query: 'spring tide' },
      ...(webhook !== undefined && {
        webhook: {
          url: webhook,
          event_types: ['monitor.event.detected', 'monitor.execution.completed', 'monitor.execution.failed'],
        },
      }),
    }),
  )
  while (!service.records().monitor_events.some(({ monitor_id }) => monitor_id === created.monitor_id))
    await new Promise((resolve) => setImmediate(resolve))
  return created.monitor_id
}

/** Adds documents one by one, with an execution after each. */
async function report({ client, docs, service }: Research, monitor: string, from: number, to: number) {
  for (let n = from; n <= to; n++) {
    const before = service.records().monitor_events.length
    await write(docs, note(n))
    await firstValueFrom(client.monitors.trigger(monitor))
    while (service.records().monitor_events.length === before)
      await new Promise((resolve) => setImmediate(resolve))
  }
}

const kept = ({ service }: Research) => service.records().monitor_events.map(({ id }) => id)
const ids = (events: readonly ResearchEvent[]) => events.map(({ id }) => id)

describe('monitors, end to end', () => {
  it('lists over more than three pages, newest first, and follows oldest first', async () => {
    const both = await research()
    const monitor = await monitorOf(both)
    await report(both, monitor, 1, 9)

    const listed = await all(both.client.monitors.events(monitor, { limit: 2, include_completions: true }))
    const followed = await lastValueFrom(
      both.client.monitors
        .follow(monitor, { limit: 2, include_completions: true })
        .pipe(take(listed.length), toArray()),
    )

    expect(listed.length).toBeGreaterThan(8)
    expect(ids(listed)).toEqual(kept(both).toReversed())
    expect(ids(followed)).toEqual(kept(both))
  })

  it('follows events that are reported meanwhile, each once', async () => {
    const both = await research()
    const monitor = await monitorOf(both)
    const followed = lastValueFrom(
      both.client.monitors.follow(monitor, { limit: 1, pollInterval: 0 }).pipe(take(5), toArray()),
    )

    await report(both, monitor, 1, 5)

    const found = both.service
      .records()
      .monitor_events.filter(({ event }) => event.event_type === 'event_stream')
    expect(ids(await followed)).toEqual(found.map(({ id }) => id))
  })

  it('cancels permanently', async () => {
    const both = await research()
    const monitor = await monitorOf(both)

    const [first] = await all(both.client.monitors.cancel(monitor))
    const [second] = await all(both.client.monitors.cancel(monitor))

    expect([first?.status, second?.status]).toEqual(['cancelled', 'cancelled'])
  })
})

describe('watch, end to end', () => {
  it('emits a run of a webhook and a stream once, with its output', async () => {
    const processor = new HeldRuns()
    const both = await research({ processor, faults: [{ kind: 'repeat', times: 3 }] })
    const { receiver, url } = await receiving(both)
    const group = await both.group()
    const webhook = { url, event_types: ['task_run.status'] }
    const inputs = ['a', 'b', 'c', 'd', 'e', 'f'].map((input) => ({ input, processor: 'base', webhook }))
    await all(both.client.taskGroups.addRuns(group, { inputs }))
    const watched = all(
      both.client.watch({ taskGroups: [group], webhooks: receiver }).pipe(ofType('task_run.state')),
    )
    // The watch starts before the first run ends, so that both transports deliver it.
    processor.release()

    const runs = await watched
    expect(runs.map(({ id }) => id).toSorted()).toEqual(
      both.service
        .records()
        .runs.map(({ run_id }) => `${run_id}:completed`)
        .toSorted(),
    )
    expect(runs.every(({ data }) => data.output != null)).toBe(true)
  })

  it('expands thin webhooks of a monitor, and drops the duplicates of the polls', async () => {
    const both = await research()
    const { receiver, url } = await receiving(both)
    const monitor = await monitorOf(both, url)
    const watched = both.client.watch({
      monitors: [{ id: monitor, pollInterval: 0, include_completions: true }],
      webhooks: receiver,
    })
    const seen: ResearchEvent[] = []
    const subscription = watched.subscribe((event) => seen.push(event))

    await report(both, monitor, 1, 4)
    while (new Set(ids(seen)).size < kept(both).length) await new Promise((resolve) => setImmediate(resolve))
    subscription.unsubscribe()

    expect(ids(seen).toSorted()).toEqual(kept(both).toSorted())
  })

  it('emits the events of a monitor from webhooks alone', async () => {
    const both = await research()
    const { receiver, url } = await receiving(both)
    const monitor = await monitorOf(both, url)
    const found = lastValueFrom(
      both.client.watch({ webhooks: receiver }).pipe(ofType('monitor.event_stream'), take(3), toArray()),
    )

    await report(both, monitor, 1, 3)

    expect((await found).map(({ via, source }) => [via, source])).toEqual(
      Array.from({ length: 3 }, () => ['webhook', `/v1/monitors/${monitor}`]),
    )
  })

  it('fetches the output of a run that is in no stream', async () => {
    const both = await research()
    const { receiver, url } = await receiving(both)
    const group = await both.group()
    const first = firstValueFrom(
      both.client.watch({ webhooks: receiver, hold: 0 }).pipe(ofType('task_run.state')),
    )

    const inputs = [{ input: 'a', processor: 'base', webhook: { url, event_types: ['task_run.status'] } }]
    await all(both.client.taskGroups.addRuns(group, { inputs }))

    expect((await first).data.output?.content).toBe('about "a"')
  })
})
