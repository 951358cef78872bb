import * as fc from 'fast-check'
import { delay, from, Subject, VirtualTimeScheduler } from 'rxjs'
import { completeness } from '../../src/protocol/event.ts'
import type { ResearchEvent } from 'rivulet'
import type { WebhookDelivery } from 'rivulet/webhooks'
import { mergeWebhooks } from 'rivulet/operators'
import { expect, it } from 'vitest'
import { change, detectedDelivery, fullRun, runDelivery, taskRun } from './events.ts'

const HOLD = 10
const END = 60

/** When the stream emits a run, if it does, and when each of its webhooks arrives. */
interface RunScript {
  readonly streamed: number | undefined
  readonly posted: readonly number[]
}

/** As {@link RunScript} for the events of an execution; how many there are, and how long their expansion takes. */
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

/** Plays the scripts in virtual time, and returns the emitted and the dropped events. */
function play(runs: readonly RunScript[], executions: readonly ExecutionScript[]) {
  const scheduler = new VirtualTimeScheduler()
  const stream = new Subject<ResearchEvent>()
  const deliveries = new Subject<WebhookDelivery>()
  const emitted: ResearchEvent[] = []
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
    .subscribe({ next: (event) => emitted.push(event), complete: () => (ends += 1) })

  const emit = (time: number, event: ResearchEvent) => {
    offered += 1
    scheduler.schedule(() => stream.next(event), time)
  }
  const post = (time: number, delivered: WebhookDelivery) =>
    scheduler.schedule(() => deliveries.next(delivered), time)

  for (const [index, { streamed, posted }] of runs.entries()) {
    const id = String(index)
    if (streamed !== undefined) emit(streamed, fullRun(id))
    for (const time of posted) post(time, runDelivery(taskRun(id)))
    offered += posted.length
  }
  for (const [group, script] of executions.entries()) {
    const { streamed, posted } = script
    if (streamed !== undefined) for (const event of changesOf(group, script, 'poll')) emit(streamed, event)
    for (const time of posted) post(time, detectedDelivery(String(group)))
  }
  scheduler.schedule(() => stream.complete(), END)
  scheduler.flush()
  return { emitted, dropped, offered, ends }
}

it('in any order, each event is emitted once in its most complete form', () => {
  const scripts = [fc.array(run, { maxLength: 6 }), fc.array(execution, { maxLength: 6 })] as const
  fc.assert(
    fc.property(...scripts, (runs, executions) => {
      const { emitted, ends } = play(runs, executions)

      expect(ends).toBe(1)
      const emissionsOf = (id: string) => emitted.filter((event) => event.id === id).map(completeness)
      for (const [index, { streamed, posted }] of runs.entries()) {
        const first = Math.min(...posted)
        const expected: number[] = []
        // A partial event is emitted only if the complete one is later than `hold`.
        if (posted.length > 0 && (streamed === undefined || streamed > first + HOLD)) expected.push(0)
        if (streamed !== undefined) expected.push(1)
        expect(emissionsOf(`${index}:completed`)).toEqual(expected)
      }
      for (const [group, script] of executions.entries()) {
        const exists = script.streamed !== undefined || script.posted.length > 0
        for (const { id } of changesOf(group, script, 'poll'))
          expect(emissionsOf(id)).toEqual(exists ? [0] : [])
      }
    }),
    { numRuns: 300 },
  )
})

it('in any order, each duplicate is emitted or reported as dropped', () => {
  const scripts = [fc.array(run, { maxLength: 6 }), fc.array(execution, { maxLength: 6 })] as const
  fc.assert(
    fc.property(...scripts, (runs, executions) => {
      const { emitted, dropped, offered } = play(runs, executions)
      const isNotice = (event: ResearchEvent) => event.type === 'unknown'
      expect(emitted.filter(isNotice)).toEqual([])
      expect(emitted.length + dropped.filter((event) => !isNotice(event)).length).toBe(offered)
    }),
    { numRuns: 300 },
  )
})
