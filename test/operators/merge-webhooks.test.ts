import {
  bufferTime,
  defer,
  delay,
  EMPTY,
  filter,
  map,
  NEVER,
  Observable,
  of,
  Subject,
  take,
  throwError,
  VirtualTimeScheduler,
} from 'rxjs'
import { ArgumentError, runEvent } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import type { WebhookDelivery } from 'rivulet/webhooks'
import { Gate, mergeWebhooks } from 'rivulet/operators'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { currentGate, withGate } from '../../src/protocol/gate.ts'
import { webhookEvent } from '../../src/protocol/webhook-event.ts'
import {
  bareRun,
  change,
  delivery,
  detected,
  detectedDelivery,
  fullRun,
  runDelivery,
  taskRun,
  webhookRun,
  withoutReceived,
} from './events.ts'
import { inVirtualTime } from './virtual-time.ts'

const failedRun = taskRun('f', 'failed', { error: { message: 'no source' } })

/** Capital letters: events of the stream or of an expansion. Small letters: events of webhooks. */
const events: Record<string, ResearchEvent> = {
  R: fullRun('r'),
  b: bareRun('r'),
  r: webhookRun('r'),
  S: fullRun('s'),
  s: webhookRun('s'),
  f: runEvent({ run: failedRun }, 'webhook'),
  F: runEvent({ run: failedRun }, 'stream', 'at-f'),
  c: runEvent({ run: taskRun('c', 'cancelled') }, 'webhook'),
  X: change('x'),
  Y: change('y'),
  g: webhookEvent(detected('g')),
  h: webhookEvent(detected('h')),
  o: webhookEvent({ type: 'other' }),
}

const deliveries: Record<string, WebhookDelivery> = {
  r: runDelivery(taskRun('r')),
  s: runDelivery(taskRun('s')),
  f: runDelivery(failedRun),
  e: runDelivery(taskRun('r', 'failed')),
  c: runDelivery(taskRun('c', 'cancelled')),
  g: detectedDelivery('g'),
  h: detectedDelivery('h'),
  o: delivery({ type: 'other' }),
}

const fail = (): never => {
  throw new Error('callback')
}

describe('mergeWebhooks', () => {
  it('emits what only the stream has and what only a webhook has', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const stream = cold('-X---Y-|', events)
      const webhooks = hot('---f-----', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks))).toBe('-X-f-Y-|', events)
      expectSubscriptions(stream.subscriptions).toBe('^------!')
      expectSubscriptions(webhooks.subscriptions).toBe('^------!')
    }))

  it('drops the later of two duplicates, whether the stream or a webhook was first', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const stream = cold('-R-----F-|', events)
      const webhooks = hot('---r-f-r-', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks))).toBe('-R---f---|', events)
    }))

  it('holds a partial event until the stream emits the complete one', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const stream = cold('-----R-----|', events)
      const webhooks = hot('-r---------', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks, { hold: 5 }))).toBe('-----R-----|', events)
    }))

  it('holds it for two seconds by default', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('r', deliveries)
      expectObservable(cold('3s |', events).pipe(mergeWebhooks(webhooks))).toBe('2s r 999ms |', events)
    }))

  it('emits the partial event when the complete one is late, and then the complete one', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const stream = cold('--------R--|', events)
      const webhooks = hot('-r---------', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks, { hold: 5 }))).toBe('------r-R--|', events)
    }))

  it('expands the partial event when the complete one is late', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const full = cold('--R|', events)
      const webhooks = hot('-r---------', deliveries)
      const merged = cold('----------|', events).pipe(
        mergeWebhooks(webhooks, { hold: 3, expandRun: () => full }),
      )
      expectObservable(merged).toBe('------R---|', events)
      expectSubscriptions(full.subscriptions).toBe('----^--!')
    }))

  it('unsubscribes from the expansion when the stream emits the complete event', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const full = cold('-----R|', events)
      const webhooks = hot('-r---------', deliveries)
      const stream = cold('------R---|', events)
      const merged = stream.pipe(mergeWebhooks(webhooks, { hold: 3, expandRun: () => full }))
      expectObservable(merged).toBe('------R---|', events)
      expectSubscriptions(full.subscriptions).toBe('----^-!')
    }))

  it('emits the partial event and calls onError when the expansion fails', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const failures: unknown[] = []
      const webhooks = hot('-r---------', deliveries)
      const merged = cold('----------|', events).pipe(
        mergeWebhooks(webhooks, {
          hold: 2,
          expandRun: () => cold('-#', undefined, 'down'),
          onError: (error, event) => failures.push([error, event]),
        }),
      )
      expectObservable(merged).toBe('----r-----|', events)
      flush()
      expect(withoutReceived(failures)).toEqual(withoutReceived([['down', events['r']]]))
    }))

  it('emits the partial event when the expansion throws, is empty, or has another event', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const merged = (expandRun: () => Observable<ResearchEvent>) =>
        cold('-------|', events).pipe(mergeWebhooks(hot('-r-----', deliveries), { hold: 2, expandRun }))
      expectObservable(merged(fail)).toBe('---r---|', events)
      expectObservable(merged(() => EMPTY)).toBe('---r---|', events)
      expectObservable(merged(() => of(change('x')))).toBe('---(Xr)|', events)
    }))

  it('drops the held event for a duplicate of the stream that is as complete', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const full = () => cold('R|', events)
      const merged = cold('--b------|', events).pipe(
        mergeWebhooks(hot('-r-------', deliveries), { hold: 4, expandRun: full }),
      )
      expectObservable(merged).toBe('--b------|', events)
    }))

  it('holds a repeated webhook once, from its first arrival', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const dropped: ResearchEvent[] = []
      const webhooks = hot('-r-r-------', deliveries)
      const options = { hold: 5, onDuplicate: (event: ResearchEvent) => dropped.push(event) }
      expectObservable(cold('----------|', events).pipe(mergeWebhooks(webhooks, options))).toBe(
        '------r---|',
        events,
      )
      flush()
      expect(withoutReceived(dropped)).toEqual(withoutReceived([events['r']]))
    }))

  it('holds a failed run only without its error, and no cancelled run', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-f-c-e------', deliveries)
      const e = webhookEvent(deliveries['e']?.payload)
      expectObservable(cold('-----------|', events).pipe(mergeWebhooks(webhooks, { hold: 4 }))).toBe(
        '-f-c-----e-|',
        { ...events, e },
      )
    }))

  it('emits the events of an expansion after the stream has completed', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-r', deliveries)
      const expandRun = () => cold('-R|', events)
      expectObservable(cold<ResearchEvent>('---|').pipe(mergeWebhooks(webhooks, { expandRun }))).toBe(
        '----R|',
        events,
      )
    }))

  it('expands or emits held events when the stream completes, and then completes', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const webhooks = hot('-rs----f--', deliveries)
      const stream = cold<ResearchEvent>('----|')
      const expandRun = () => cold('---S|', events)
      expectObservable(stream.pipe(mergeWebhooks(webhooks))).toBe('----(rs|)', events)
      // The expansion of r has no event of r, so r is emitted as it is.
      expectObservable(stream.pipe(mergeWebhooks(webhooks, { expandRun }))).toBe('-------S(r|)', events)
      expectSubscriptions(webhooks.subscriptions).toBe(['^---!', '^---!'])
    }))

  it('expands four runs at once', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const nothing = cold<ResearchEvent>('--|')
      const webhooks = of(...['1', '2', '3', '4', '5'].map((id) => runDelivery(taskRun(id))))
      const merged = cold<ResearchEvent>('-|').pipe(
        mergeWebhooks(webhooks, { expandRun: () => nothing }),
        map((event) => event.id),
        bufferTime(1),
        filter((ids) => ids.length > 0),
      )
      expectObservable(merged).toBe('---a-(b|)', {
        a: ['1:completed', '2:completed', '3:completed', '4:completed'],
        b: ['5:completed'],
      })
      expectSubscriptions(nothing.subscriptions).toBe(['-^-!', '-^-!', '-^-!', '-^-!', '---^-!'])
    }))

  it('expands a thin webhook into its events, each emitted once', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const expanded: string[][] = []
      const webhooks = hot('-g--------', deliveries)
      const merged = cold('X--------Y-|', events).pipe(
        mergeWebhooks(webhooks, {
          expandMonitor: (...ids) => {
            expanded.push(ids)
            return cold('--(XY)|', events)
          },
        }),
      )
      expectObservable(merged).toBe('X------Y---|', events)
      flush()
      expect(expanded).toEqual([['m', 'g']])
    }))

  it('expands several in the order of arrival', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-gh-------', deliveries)
      const found: Record<string, Observable<ResearchEvent>> = {
        g: cold('---X|', events),
        h: cold('Y|', events),
      }
      const merged = cold('---------|', events).pipe(
        mergeWebhooks(webhooks, { expandMonitor: (_, group) => found[group] ?? EMPTY }),
      )
      expectObservable(merged).toBe('-----(XY)|', events)
    }))

  it('emits a thin webhook as unknown without expandMonitor', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-g-g-o-', deliveries)
      expectObservable(cold('------|', events).pipe(mergeWebhooks(webhooks))).toBe('-g---o|', events)
    }))

  it('emits it after the events of an expansion that fails', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const failures: unknown[] = []
      const webhooks = hot('-g--------', deliveries)
      const merged = cold('---------|', events).pipe(
        mergeWebhooks(webhooks, {
          expandMonitor: () => cold('-X#', events, 'down'),
          onError: (error, event) => failures.push([error, event]),
        }),
      )
      expectObservable(merged).toBe('---(Xg)--|', events)
      flush()
      expect(withoutReceived(failures)).toEqual(withoutReceived([['down', events['g']]]))
    }))

  it('emits it when the expansion is empty', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-g---', deliveries)
      const merged = cold('----|', events).pipe(mergeWebhooks(webhooks, { expandMonitor: () => EMPTY }))
      expectObservable(merged).toBe('-g--|', events)
    }))

  it('expands a repeated webhook once during an expansion, and again later', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const found = cold('--X|', events)
      const webhooks = hot('-g-g----g----', deliveries)
      const merged = cold('------------|', events).pipe(
        mergeWebhooks(webhooks, { expandMonitor: () => found }),
      )
      expectObservable(merged).toBe('----X-------|', events)
      expectSubscriptions(found.subscriptions).toBe(['-^--!', '--------^--!'])
    }))

  it('waits for expansions when the stream completes', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-g---', deliveries)
      const expandMonitor = () => cold('---X|', events)
      expectObservable(cold('--|', events).pipe(mergeWebhooks(webhooks, { expandMonitor }))).toBe(
        '-----(X|)',
        events,
      )
    }))

  it('continues with the stream when the deliveries complete', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const webhooks = cold('-f|', deliveries)
      expectObservable(cold('---X-|', events).pipe(mergeWebhooks(webhooks))).toBe('-f-X-|', events)
      expectSubscriptions(webhooks.subscriptions).toBe('^-!')
    }))

  it('passes on an error of the stream after the held events', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const found = cold<ResearchEvent>('-----')
      const webhooks = hot('-rg-----', deliveries)
      const stream = cold<ResearchEvent>('----#')
      const merged = stream.pipe(mergeWebhooks(webhooks, { expandMonitor: () => found }))
      expectObservable(merged).toBe('----(rg#)', events)
      expectSubscriptions(stream.subscriptions).toBe('^---!')
      expectSubscriptions(webhooks.subscriptions).toBe('^---!')
      expectSubscriptions(found.subscriptions).toBe('--^-!')
    }))

  it.each(['refused', { retryable: true }])(
    'emits the webhook as it is after a failure of its expansion: %j',
    (failure) =>
      inVirtualTime(({ cold, hot, expectObservable, flush }) => {
        const webhooks = hot('-g-----', deliveries)
        const errors: unknown[] = []
        const merged = cold<ResearchEvent>('-------').pipe(
          mergeWebhooks(webhooks, {
            expandMonitor: () => cold<ResearchEvent>('--#', undefined, failure),
            onError: (error) => void errors.push(error),
          }),
        )
        expectObservable(merged).toBe('---g---', events)
        flush()
        expect(errors).toEqual([failure])
      }),
  )

  it('emits a partial run after a failure of its expansion', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('r------', deliveries)
      const options = { hold: 1, expandRun: () => cold<ResearchEvent>('--#') }
      const merged = cold<ResearchEvent>('-------').pipe(mergeWebhooks(webhooks, options))
      expectObservable(merged).toBe('---r---', events)
    }))

  it('errors with what onError throws', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-g-----', deliveries)
      const merged = cold<ResearchEvent>('-------').pipe(
        mergeWebhooks(webhooks, {
          expandMonitor: () => cold<ResearchEvent>('--#', undefined, 'the key is refused'),
          onError: (error) => {
            throw error
          },
        }),
      )
      // The held event comes first.
      expectObservable(merged).toBe('---(g#)', events, 'the key is refused')
    }))

  it('does not lose expanded events that wait for earlier ones when the stream errors', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const found: Record<string, Observable<ResearchEvent>> = { g: NEVER, h: cold('Y|', events) }
      const webhooks = hot('-gh-----', deliveries)
      const expandMonitor = (_: string, group: string) => found[group] ?? EMPTY
      const merged = cold('----#', events).pipe(mergeWebhooks(webhooks, { expandMonitor }))
      expectObservable(merged).toBe('----(gh#)', events)
    }))

  it('passes on an error of the deliveries after the held events', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const stream = cold('-X------', events)
      const webhooks = cold('--r-#', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks))).toBe('-X--(r#)', events)
      expectSubscriptions(stream.subscriptions).toBe('^---!')
    }))

  it('unsubscribes from the stream, the deliveries and expansions when it is unsubscribed', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions, flush }) => {
      const stream = cold('-X---------', events)
      const webhooks = hot('rg---s-----', deliveries)
      const [full, found] = [cold<ResearchEvent>('------'), cold<ResearchEvent>('------')]
      const options = { hold: 3, expandRun: () => full, expandMonitor: () => found }
      expectObservable(stream.pipe(mergeWebhooks(webhooks, options)), '^-----!').toBe('-X-----', events)
      expectSubscriptions(stream.subscriptions).toBe('^-----!')
      expectSubscriptions(webhooks.subscriptions).toBe('^-----!')
      expectSubscriptions(full.subscriptions).toBe('---^--!')
      expectSubscriptions(found.subscriptions).toBe('-^----!')
      flush()
    }))

  it('stops a synchronous stream once the subscriber has enough', () => {
    let produced = 0
    const endless = new Observable<ResearchEvent>((subscriber) => {
      while (!subscriber.closed) subscriber.next(change(String(produced++)))
    })
    const got: ResearchEvent[] = []
    endless.pipe(mergeWebhooks(NEVER), take(2)).subscribe((event) => got.push(event))
    expect(withoutReceived(got)).toEqual(withoutReceived([change('0'), change('1')]))
    expect(produced).toBe(2)
  })

  it('cancels the hold when the complete event arrives, or when it is unsubscribed', () => {
    const scheduler = new VirtualTimeScheduler()
    const webhooks = new Subject<WebhookDelivery>()
    const stream = new Subject<ResearchEvent>()
    const subscription = stream.pipe(mergeWebhooks(webhooks, { scheduler })).subscribe()
    for (const id of ['r', 's']) webhooks.next(runDelivery(taskRun(id)))
    expect(scheduler.actions).toHaveLength(2)
    stream.next(fullRun('r'))
    expect(scheduler.actions).toHaveLength(1)
    subscription.unsubscribe()
    expect(scheduler.actions).toEqual([])
  })

  it('neither holds nor expands a duplicate of an emitted event', () => {
    const scheduler = new VirtualTimeScheduler()
    const webhooks = of(runDelivery(taskRun('r')))
    const expandRun = () => throwError(() => new Error('expanded'))
    const got: ResearchEvent[] = []
    const stream = new Subject<ResearchEvent>()
    stream
      .pipe(mergeWebhooks(webhooks.pipe(delay(1, scheduler)), { scheduler, expandRun, onError: fail }))
      .subscribe((event) => got.push(event))
    const bare = bareRun('r')
    stream.next(bare)
    scheduler.flush()
    expect(got).toEqual([bare])
    expect(scheduler.frame).toBe(1)
  })

  it('replaces a held event by the complete one of a later webhook, without an expansion', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-p-r------', {
        p: runDelivery(taskRun('f', 'failed')),
        r: runDelivery(failedRun),
      })
      const options = { hold: 4, expandRun: () => of(change('x')) }
      expectObservable(cold('---------|', events).pipe(mergeWebhooks(webhooks, options))).toBe(
        '---f-----|',
        events,
      )
    }))

  it('calls onDuplicate with each dropped duplicate', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const dropped: ResearchEvent[] = []
      const stream = cold('---R---R-|', events)
      const webhooks = hot('-r---r---', deliveries)
      const options = { onDuplicate: (event: ResearchEvent) => dropped.push(event) }
      expectObservable(stream.pipe(mergeWebhooks(webhooks, options))).toBe('---R-----|', events)
      flush()
      expect(withoutReceived(dropped)).toEqual(withoutReceived([events['r'], events['r'], events['R']]))
    }))

  it('errors with what its callbacks throw', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const stream = cold('-X-X-|', events)
      const webhooks = hot('-----g-', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks, { onDuplicate: fail }))).toBe(
        '-X-#',
        events,
        new Error('callback'),
      )
      const others = hot('-----g-', deliveries)
      expectSubscriptions(webhooks.subscriptions).toBe('^--!')
      const expandMonitor = () => throwError(() => 'down')
      expectObservable(
        cold<ResearchEvent>('-------').pipe(mergeWebhooks(others, { expandMonitor, onError: fail })),
      ).toBe('-----(g#)', events, new Error('callback'))
    }))

  it('forgets emitted events after the time to live, on the clock of its scheduler', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const stream = cold('X--X-----X|', events)
      expectObservable(stream.pipe(mergeWebhooks(NEVER, { timeToLive: 5, scheduler }))).toBe(
        'X--------X|',
        events,
      )
    }))

  it('remembers events separately for each subscription', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const merged = cold('X-X|', events).pipe(mergeWebhooks(NEVER))
      expectObservable(merged).toBe('X--|', events)
      expectObservable(merged, '-^').toBe('-X--|', events)
    }))

  it('subscribes to the stream, the deliveries and every expansion under the gate of its subscriber', () =>
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const gate = new Gate()
      const gates: (Gate | undefined)[] = []
      const recordingGate = <T>(source: Observable<T>) =>
        defer(() => {
          gates.push(currentGate())
          return source
        })
      const options = {
        hold: 1,
        expandRun: () => recordingGate(cold('R|', events)),
        expandMonitor: () => recordingGate(cold('X|', events)),
      }
      const merged = recordingGate(cold('----|', events)).pipe(
        mergeWebhooks(recordingGate(cold('rg', deliveries)), options),
      )
      const gated = new Observable<ResearchEvent>((subscriber) =>
        withGate(gate, () => merged.subscribe(subscriber)),
      )
      expectObservable(gated).toBe('-R X-|'.replaceAll(' ', ''), events)
      flush()
      expect(gates).toEqual([gate, gate, gate, gate])
    }))

  it('misses no webhook while the stream emits synchronously', () => {
    const webhooks = new Subject<WebhookDelivery>()
    const got: ResearchEvent[] = []
    const stream = new Observable<ResearchEvent>((subscriber) => {
      webhooks.next(runDelivery(failedRun))
      subscriber.next(change('x'))
      subscriber.complete()
    })
    stream.pipe(mergeWebhooks(webhooks)).subscribe((event) => got.push(event))
    expect(withoutReceived(got)).toEqual(withoutReceived([events['f'], events['X']]))
    expect(webhooks.observed).toBe(false)
  })

  it('refuses deliveries that are not an Observable and a wrong hold, capacity or timeToLive at the call', () => {
    // @ts-expect-error no observable
    expect(() => mergeWebhooks([])).toThrow(ArgumentError)
    expect(() => mergeWebhooks(NEVER, { hold: -1 })).toThrow(/hold/)
    expect(() => mergeWebhooks(NEVER, { hold: Infinity })).toThrow(/hold/)
    expect(() => mergeWebhooks(NEVER, { capacity: 0 })).toThrow(/capacity/)
    expect(() => mergeWebhooks(NEVER, { timeToLive: -1 })).toThrow(/timeToLive/)
  })

  it('accepts a narrower stream and emits the whole union', () => {
    const narrow = of(runEvent({ run: failedRun }, 'stream'))
    expectTypeOf(narrow.pipe(mergeWebhooks(NEVER))).toEqualTypeOf<Observable<ResearchEvent>>()
  })
})
