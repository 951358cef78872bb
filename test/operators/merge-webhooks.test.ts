import {
  bufferTime,
  defer,
  delay,
  EMPTY,
  filter,
  finalize,
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
import type { ResearchEvent, WebhookDelivery } from 'rivulet'
import { Gate, mergeWebhooks } from 'rivulet/operators'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { currentGate, throughGate } from '../../src/protocol/gate.ts'
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

/** Capital letters are what the stream says or an expansion finds, small ones what a webhook says of the same. */
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
  it('tells what only the stream has and what only a webhook has', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const stream = cold('-X---Y-|', events)
      const webhooks = hot('---f-----', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks))).toBe('-X-f-Y-|', events)
      expectSubscriptions(stream.subscriptions).toBe('^------!')
      expectSubscriptions(webhooks.subscriptions).toBe('^------!')
    }))

  it('drops the webhook about what the stream told, and the copy of what a webhook told', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const stream = cold('-R-----F-|', events)
      const webhooks = hot('---r-f-r-', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks))).toBe('-R---f---|', events)
    }))

  it('holds a webhook without the output until the stream brings the fuller copy', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const stream = cold('-----R-----|', events)
      const webhooks = hot('-r---------', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks, { hold: 5 }))).toBe('-----R-----|', events)
    }))

  it('holds it for two seconds when nothing else is said', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('r', deliveries)
      expectObservable(cold('3s |', events).pipe(mergeWebhooks(webhooks))).toBe('2s r 999ms |', events)
    }))

  it('passes it on as it is when no fuller copy comes in time, and the fuller one later', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const stream = cold('--------R--|', events)
      const webhooks = hot('-r---------', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks, { hold: 5 }))).toBe('------r-R--|', events)
    }))

  it('fetches the full copy when none comes in time', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const full = cold('--R|', events)
      const webhooks = hot('-r---------', deliveries)
      const merged = cold('----------|', events).pipe(
        mergeWebhooks(webhooks, { hold: 3, expandRun: () => full }),
      )
      expectObservable(merged).toBe('------R---|', events)
      expectSubscriptions(full.subscriptions).toBe('----^--!')
    }))

  it('ends the fetching when the stream brings the full copy after all', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const full = cold('-----R|', events)
      const webhooks = hot('-r---------', deliveries)
      const stream = cold('------R---|', events)
      const merged = stream.pipe(mergeWebhooks(webhooks, { hold: 3, expandRun: () => full }))
      expectObservable(merged).toBe('------R---|', events)
      expectSubscriptions(full.subscriptions).toBe('----^-!')
    }))

  it('passes the poor copy on and tells of the error when the fetching fails', () =>
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

  it('passes the poor copy on when the fetching throws, finds nothing, or something else', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const merged = (expandRun: () => Observable<ResearchEvent>) =>
        cold('-------|', events).pipe(mergeWebhooks(hot('-r-----', deliveries), { hold: 2, expandRun }))
      expectObservable(merged(fail)).toBe('---r---|', events)
      expectObservable(merged(() => EMPTY)).toBe('---r---|', events)
      expectObservable(merged(() => of(change('x')))).toBe('---(Xr)|', events)
    }))

  it('drops the held webhook for a copy of the stream that says no more', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const full = () => cold('R|', events)
      const merged = cold('--b------|', events).pipe(
        mergeWebhooks(hot('-r-------', deliveries), { hold: 4, expandRun: full }),
      )
      expectObservable(merged).toBe('--b------|', events)
    }))

  it('holds a repeated webhook once, from its first coming', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const dropped: ResearchEvent[] = []
      const webhooks = hot('-r-r-------', deliveries)
      const config = { hold: 5, onDuplicate: (event: ResearchEvent) => dropped.push(event) }
      expectObservable(cold('----------|', events).pipe(mergeWebhooks(webhooks, config))).toBe(
        '------r---|',
        events,
      )
      flush()
      expect(withoutReceived(dropped)).toEqual(withoutReceived([events['r']]))
    }))

  it('does not hold a run that failed with its error or was cancelled, but one that lacks its error', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-f-c-e------', deliveries)
      const e = webhookEvent(deliveries['e']?.payload)
      expectObservable(cold('-----------|', events).pipe(mergeWebhooks(webhooks, { hold: 4 }))).toBe(
        '-f-c-----e-|',
        { ...events, e },
      )
    }))

  it('tells what it fetches after the stream has completed', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-r', deliveries)
      const expandRun = () => cold('-R|', events)
      expectObservable(cold<ResearchEvent>('---|').pipe(mergeWebhooks(webhooks, { expandRun }))).toBe(
        '----R|',
        events,
      )
    }))

  it('settles what it holds when the stream completes, and completes after that', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const webhooks = hot('-rs----f--', deliveries)
      const stream = cold<ResearchEvent>('----|')
      const expandRun = () => cold('---S|', events)
      expectObservable(stream.pipe(mergeWebhooks(webhooks))).toBe('----(rs|)', events)
      // The one that is fetched as r is not r, so r comes as it was.
      expectObservable(stream.pipe(mergeWebhooks(webhooks, { expandRun }))).toBe('-------S(r|)', events)
      expectSubscriptions(webhooks.subscriptions).toBe(['^---!', '^---!'])
    }))

  it('fetches four runs at once', () =>
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

  it('expands a thin webhook into its events, each told once', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const asked: string[][] = []
      const webhooks = hot('-g--------', deliveries)
      const merged = cold('X--------Y-|', events).pipe(
        mergeWebhooks(webhooks, {
          expandMonitor: (...ids) => {
            asked.push(ids)
            return cold('--(XY)|', events)
          },
        }),
      )
      expectObservable(merged).toBe('X------Y---|', events)
      flush()
      expect(asked).toEqual([['m', 'g']])
    }))

  it('expands several in the order of their coming', () =>
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

  it('passes a thin webhook on as unknown when there is nothing to expand it with', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-g-g-o-', deliveries)
      expectObservable(cold('------|', events).pipe(mergeWebhooks(webhooks))).toBe('-g---o|', events)
    }))

  it('passes it on after what was found, when the expansion fails', () =>
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

  it('passes it on when the expansion finds nothing', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-g---', deliveries)
      const merged = cold('----|', events).pipe(mergeWebhooks(webhooks, { expandMonitor: () => EMPTY }))
      expectObservable(merged).toBe('-g--|', events)
    }))

  it('expands a repeated webhook once while it is at it, and again later', () =>
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

  it('goes on with the stream when the deliveries complete', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const webhooks = cold('-f|', deliveries)
      expectObservable(cold('---X-|', events).pipe(mergeWebhooks(webhooks))).toBe('-f-X-|', events)
      expectSubscriptions(webhooks.subscriptions).toBe('^-!')
    }))

  it('passes an error of the stream on after the webhooks that wait', () =>
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

  it('leaves the webhooks that wait to whoever keeps account of them when the stream fails', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-rf-----', deliveries)
      const told: [string, string[]][] = []
      const onDelivery = ({ id }: WebhookDelivery, found: readonly ResearchEvent[]) =>
        void told.push([id, found.map((event) => event.id)])
      const merged = cold<ResearchEvent>('----#').pipe(mergeWebhooks(webhooks, { onDelivery }))
      expectObservable(merged.pipe(finalize(() => expect(told).toHaveLength(2)))).toBe('--f-#', events)
    }))

  it('takes no webhook for handled whose expansion may succeed later, where somebody keeps account', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const webhooks = hot('-g-----', deliveries)
      const told: string[] = []
      const merged = cold<ResearchEvent>('-------').pipe(
        mergeWebhooks(webhooks, {
          expandMonitor: () => cold<ResearchEvent>('--#', undefined, { retryable: true }),
          onDelivery: ({ id }) => void told.push(id),
        }),
      )
      expectObservable(merged).toBe('---#', undefined, { retryable: true })
      flush()
      expect(told).toEqual([])
    }))

  it('passes a webhook on as it is whose expansion is refused for good, where somebody keeps account', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const webhooks = hot('-g-----', deliveries)
      const told: (readonly ResearchEvent[])[] = []
      const errors: unknown[] = []
      const merged = cold<ResearchEvent>('-------').pipe(
        mergeWebhooks(webhooks, {
          expandMonitor: () => cold<ResearchEvent>('--#', undefined, 'refused'),
          onDelivery: (_, found) => void told.push(found),
          onError: (error) => void errors.push(error),
        }),
      )
      expectObservable(merged).toBe('---g---', events)
      flush()
      expect(withoutReceived([told, errors])).toEqual(withoutReceived([[[events.g]], ['refused']]))
    }))

  it('passes a run on as its webhook has it whose expansion is refused for good, where somebody keeps account', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('r------', deliveries)
      const merged = cold<ResearchEvent>('-------').pipe(
        mergeWebhooks(webhooks, {
          hold: 1,
          expandRun: () => cold<ResearchEvent>('--#'),
          onDelivery: () => {},
        }),
      )
      expectObservable(merged).toBe('---r---', events)
    }))

  it('fails with what `onError` throws, and takes the webhook for nothing', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const webhooks = hot('-g-----', deliveries)
      const told: string[] = []
      const merged = cold<ResearchEvent>('-------').pipe(
        mergeWebhooks(webhooks, {
          expandMonitor: () => cold<ResearchEvent>('--#', undefined, 'the key is refused'),
          onDelivery: ({ id }) => void told.push(id),
          onError: (error) => {
            throw error
          },
        }),
      )
      expectObservable(merged).toBe('---#', undefined, 'the key is refused')
      flush()
      expect(told).toEqual([])
    }))

  it('does not lose what was found and waits for its turn when the stream fails', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const found: Record<string, Observable<ResearchEvent>> = { g: NEVER, h: cold('Y|', events) }
      const webhooks = hot('-gh-----', deliveries)
      const expandMonitor = (_: string, group: string) => found[group] ?? EMPTY
      const merged = cold('----#', events).pipe(mergeWebhooks(webhooks, { expandMonitor }))
      expectObservable(merged).toBe('----(gh#)', events)
    }))

  it('passes an error of the deliveries on after the webhooks that wait', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const stream = cold('-X------', events)
      const webhooks = cold('--r-#', deliveries)
      expectObservable(stream.pipe(mergeWebhooks(webhooks))).toBe('-X--(r#)', events)
      expectSubscriptions(stream.subscriptions).toBe('^---!')
    }))

  it('ends everything when it is unsubscribed', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions, flush }) => {
      const stream = cold('-X---------', events)
      const webhooks = hot('rg---s-----', deliveries)
      const [full, found] = [cold<ResearchEvent>('------'), cold<ResearchEvent>('------')]
      const config = { hold: 3, expandRun: () => full, expandMonitor: () => found }
      expectObservable(stream.pipe(mergeWebhooks(webhooks, config)), '^-----!').toBe('-X-----', events)
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

  it('ends the hold at once when the fuller copy comes, or when it is unsubscribed', () => {
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

  it('neither holds nor fetches what was told', () => {
    const scheduler = new VirtualTimeScheduler()
    const webhooks = of(runDelivery(taskRun('r')))
    const expandRun = () => throwError(() => new Error('asked for'))
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

  it('drops a held webhook for a later one that lacks nothing, and fetches nothing', () =>
    inVirtualTime(({ cold, hot, expectObservable }) => {
      const webhooks = hot('-p-r------', {
        p: runDelivery(taskRun('f', 'failed')),
        r: runDelivery(failedRun),
      })
      const config = { hold: 4, expandRun: () => of(change('x')) }
      expectObservable(cold('---------|', events).pipe(mergeWebhooks(webhooks, config))).toBe(
        '---f-----|',
        events,
      )
    }))

  it('tells of each copy that it drops', () =>
    inVirtualTime(({ cold, hot, expectObservable, flush }) => {
      const dropped: ResearchEvent[] = []
      const stream = cold('---R---R-|', events)
      const webhooks = hot('-r---r---', deliveries)
      const config = { onDuplicate: (event: ResearchEvent) => dropped.push(event) }
      expectObservable(stream.pipe(mergeWebhooks(webhooks, config))).toBe('---R-----|', events)
      flush()
      expect(withoutReceived(dropped)).toEqual(withoutReceived([events['r'], events['r'], events['R']]))
    }))

  it('hands what its callbacks throw to the subscriber', () =>
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

  it('forgets what it told after the time to live, on the clock of its scheduler', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const stream = cold('X--X-----X|', events)
      expectObservable(stream.pipe(mergeWebhooks(NEVER, { timeToLive: 5, scheduler }))).toBe(
        'X--------X|',
        events,
      )
    }))

  it('remembers for each subscription anew', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const merged = cold('X-X|', events).pipe(mergeWebhooks(NEVER))
      expectObservable(merged).toBe('X--|', events)
      expectObservable(merged, '-^').toBe('-X--|', events)
    }))

  it('subscribes to the stream, the deliveries and every expansion under the gate of its subscriber', () =>
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const gate = new Gate()
      const gates: (Gate | undefined)[] = []
      const noting = <T>(source: Observable<T>) =>
        defer(() => {
          gates.push(currentGate())
          return source
        })
      const config = {
        hold: 1,
        expandRun: () => noting(cold('R|', events)),
        expandMonitor: () => noting(cold('X|', events)),
      }
      const merged = noting(cold('----|', events)).pipe(mergeWebhooks(noting(cold('rg', deliveries)), config))
      const gated = new Observable<ResearchEvent>((subscriber) =>
        throughGate(gate, () => merged.subscribe(subscriber)),
      )
      expectObservable(gated).toBe('-R X-|'.replaceAll(' ', ''), events)
      flush()
      expect(gates).toEqual([gate, gate, gate, gate])
    }))

  it('misses no webhook while the stream emits within its subscription', () => {
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

  it('refuses deliveries that are none and a wrong hold, capacity or time to live at the call', () => {
    // @ts-expect-error no observable
    expect(() => mergeWebhooks([])).toThrow(ArgumentError)
    expect(() => mergeWebhooks(NEVER, { hold: -1 })).toThrow(/hold/)
    expect(() => mergeWebhooks(NEVER, { hold: Infinity })).toThrow(/hold/)
    expect(() => mergeWebhooks(NEVER, { capacity: 0 })).toThrow(/capacity/)
    expect(() => mergeWebhooks(NEVER, { timeToLive: -1 })).toThrow(/timeToLive/)
  })

  it('takes a narrower stream and gives the whole union', () => {
    const narrow = of(runEvent({ run: failedRun }, 'stream'))
    expectTypeOf(narrow.pipe(mergeWebhooks(NEVER))).toEqualTypeOf<Observable<ResearchEvent>>()
  })
})
