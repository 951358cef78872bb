import * as fc from 'fast-check'
import { delay, from, Subject, VirtualTimeScheduler } from 'rxjs'
import { completeness } from 'rivulet'
import type { ResearchEvent, WebhookDelivery } from 'rivulet'
import { mergeWebhooks } from 'rivulet/operators'
import { expect, it } from 'vitest'
import { change, detectedDelivery, fullRun, runDelivery, taskRun } from './events.ts'

const HOLD = 10
const END = 60

/** When the stream brings each run, if it does, and when its webhook comes, as often as it does. */
interface RunScript {
  readonly streamed: number | undefined
  readonly posted: readonly number[]
}

/** When each execution's events are polled, if they are, and when its webhook comes; how long the expansion takes. */
interface ExecutionScript extends RunScript {
  readonly found: number
  readonly takes: number
}

const at = fc.integer({ min: 0, max: END - 1 })
const run = fc.record({
  streamed: fc.option(at, { nil: undefined }),
  posted: fc.array(at, { maxLength: 3 }),
})
const execution = fc.record({
  streamed: fc.option(at, { nil: undefined }),
  posted: fc.array(at, { maxLength: 3 }),
  found: fc.integer({ min: 1, max: 3 }),
  takes: fc.integer({ min: 0, max: 30 }),
})

function changesOf(group: number, { found }: ExecutionScript, via: 'poll' | 'webhook'): ResearchEvent[] {
  return Array.from({ length: found }, (_, n) => change(`${group}-${n}`, 'm', via))
}

/** Plays the scripts in virtual time, and returns what was told and what was dropped. */
function play(runs: readonly RunScript[], executions: readonly ExecutionScript[]) {
  const scheduler = new VirtualTimeScheduler()
  const stream = new Subject<ResearchEvent>()
  const deliveries = new Subject<WebhookDelivery>()
  const told: ResearchEvent[] = []
  const dropped: ResearchEvent[] = []
  let offered = 0
  let ends = 0

  stream
    .pipe(
      mergeWebhooks(deliveries, {
        hold: HOLD,
        scheduler,
        onDuplicate: (event) => dropped.push(event),
        expandMonitor: (_, group) => {
          const script = executions[Number(group)]
          const found = script === undefined ? [] : changesOf(Number(group), script, 'webhook')
          offered += found.length
          return from(found).pipe(delay(script?.takes ?? 0, scheduler))
        },
      }),
    )
    .subscribe({ next: (event) => told.push(event), complete: () => (ends += 1) })

  const bring = (time: number, event: ResearchEvent) => {
    offered += 1
    scheduler.schedule(() => stream.next(event), time)
  }
  const post = (time: number, delivered: WebhookDelivery) =>
    scheduler.schedule(() => deliveries.next(delivered), time)

  for (const [index, { streamed, posted }] of runs.entries()) {
    const id = String(index)
    if (streamed !== undefined) bring(streamed, fullRun(id))
    for (const time of posted) post(time, runDelivery(taskRun(id)))
    offered += posted.length
  }
  for (const [group, script] of executions.entries()) {
    const { streamed, posted } = script
    if (streamed !== undefined) for (const event of changesOf(group, script, 'poll')) bring(streamed, event)
    for (const time of posted) post(time, detectedDelivery(String(group)))
  }
  scheduler.schedule(() => stream.complete(), END)
  scheduler.flush()
  return { told, dropped, offered, ends }
}

it('whatever the order, each fact is told once and by the copy that says most', () => {
  const scripts = [fc.array(run, { maxLength: 6 }), fc.array(execution, { maxLength: 6 })] as const
  fc.assert(
    fc.property(...scripts, (runs, executions) => {
      const { told, ends } = play(runs, executions)

      expect(ends).toBe(1)
      const tellings = (id: string) => told.filter((event) => event.id === id).map(completeness)
      for (const [index, { streamed, posted }] of runs.entries()) {
        const first = Math.min(...posted)
        const expected: number[] = []
        // Only a webhook that waited in vain is told before the stream's fuller copy.
        if (posted.length > 0 && (streamed === undefined || streamed > first + HOLD)) expected.push(0)
        if (streamed !== undefined) expected.push(1)
        expect(tellings(`${index}:completed`)).toEqual(expected)
      }
      for (const [group, script] of executions.entries()) {
        const heard = script.streamed !== undefined || script.posted.length > 0
        for (const { id } of changesOf(group, script, 'poll')) expect(tellings(id)).toEqual(heard ? [0] : [])
      }
    }),
    { numRuns: 300 },
  )
})

it('whatever the order, each copy of an event is told or counted as dropped', () => {
  const scripts = [fc.array(run, { maxLength: 6 }), fc.array(execution, { maxLength: 6 })] as const
  fc.assert(
    fc.property(...scripts, (runs, executions) => {
      const { told, dropped, offered } = play(runs, executions)
      const isNotice = (event: ResearchEvent) => event.type === 'unknown'
      expect(told.filter(isNotice)).toEqual([])
      expect(told.length + dropped.filter((event) => !isNotice(event)).length).toBe(offered)
    }),
    { numRuns: 300 },
  )
})
