import { from } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from 'rivulet'
import type { Envelope, EventOf, ResearchEvent } from 'rivulet'
import { dedupe, ofType } from 'rivulet/operators'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { change, fullRun, groupStatus } from './events.ts'
import { inVirtualTime } from './virtual-time.ts'

const values = { m: change('1'), g: groupStatus('2'), r: fullRun('3') }

type Mine = Envelope<'up', { load: number }> | Envelope<'down', { since: string }>

const upAndDown = <T extends Mine>(events: Observable<T>) => events.pipe(ofType('up', 'down'))

describe('ofType', () => {
  it('emits the events of one type and completes with the source', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<ResearchEvent>('-m-g-r-m-|', values)
      expectObservable(source.pipe(ofType('monitor.event_stream'))).toBe('-m-----m-|', values)
      expectSubscriptions(source.subscriptions).toBe('^--------!')
    }))

  it('emits the events of several types and passes on an error', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<ResearchEvent>('-m-g-r-#', values)
      const kept = source.pipe(ofType('monitor.event_stream', 'task_run.state'))
      expectObservable(kept).toBe('-m---r-#', values)
      expectSubscriptions(source.subscriptions).toBe('^------!')
    }))

  it('unsubscribes from the source when it is unsubscribed', () =>
    inVirtualTime(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot<ResearchEvent>('-m-g-m-', values)
      expectObservable(source.pipe(ofType('monitor.event_stream')), '^--!').toBe('-m--', values)
      expectSubscriptions(source.subscriptions).toBe('^--!')
    }))

  it('narrows the union to one member, or to several', () => {
    const events = from<ResearchEvent[]>([])
    expectTypeOf(events.pipe(ofType('monitor.event_stream'))).toEqualTypeOf<
      Observable<EventOf<'monitor.event_stream'>>
    >()
    expectTypeOf(events.pipe(dedupe(), ofType('error', 'task_run.state'))).toEqualTypeOf<
      Observable<EventOf<'error'> | EventOf<'task_run.state'>>
    >()
  })

  it('narrows any union of envelopes', () => {
    const up = from<Mine[]>([]).pipe(ofType('up'))
    expectTypeOf(up).toEqualTypeOf<Observable<Envelope<'up', { load: number }>>>()
    expectTypeOf(upAndDown(from<Mine[]>([]))).toExtend<Observable<Mine>>()
  })

  it('narrows an event whose type is any string', () => {
    const named = from<Envelope<string, unknown>[]>([]).pipe(ofType('up'))
    expectTypeOf(named).toExtend<Observable<{ readonly type: 'up' }>>()
  })

  it('refuses no type, an empty one and, in TypeScript, one that the union lacks', () => {
    // @ts-expect-error one type at least
    expect(() => ofType()).toThrow(ArgumentError)
    expect(() => ofType('')).toThrow(ArgumentError)
    // @ts-expect-error no such member
    from<ResearchEvent[]>([]).pipe(ofType('monitor.event_steam'))
  })
})
