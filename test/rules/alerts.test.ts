import type { ResearchEvent } from 'rivulet'
import { Gate, gateOf, underGate } from 'rivulet/operators'
import { alerts, defineRules } from 'rivulet/rules'
import { map, Observable, Subject, switchMap } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { revokedEvent } from '../../src/protocol/gateway-event.ts'
import { change } from '../operators/events.ts'
import { inVirtualTime } from '../operators/virtual-time.ts'

const burst = defineRules([
  { alert: 'Burst', on: ['monitor.event_stream'], count: { over: 3, gte: 2 }, lateness: 0 },
])

const events = { a: change('1'), b: change('2'), c: change('3') }

describe('alerts', () => {
  it('emits at the deadline while the source is silent', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('-a-b------|', events)
      const types = source.pipe(
        alerts(burst, { scheduler }),
        map(({ type }) => type),
      )
      expectObservable(types).toBe('---fr-----|', {
        f: 'alert.firing',
        r: 'alert.resolved',
      })
      expectSubscriptions(source.subscriptions).toBe('^---------!')
    }))

  it('lets a slow consumer pause a source, also one that is subscribed later', () => {
    const gate = new Gate()
    const gates: unknown[] = []
    const source = new Observable<ResearchEvent>((subscriber) => {
      gates.push(gateOf(subscriber))
    })
    const begin = new Subject<void>()
    begin
      .pipe(
        switchMap(() => source),
        alerts(burst),
        underGate(gate),
      )
      .subscribe()
    begin.next()
    expect(gates).toEqual([gate])
  })

  it('emits that an alert is pending, and that it fires or does not', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const waiting = defineRules([
        { alert: 'Waiting', on: ['monitor.event_stream'], count: { over: 4, gte: 1 }, for: 3, lateness: 0 },
      ])
      const types = cold('-a-----b-c-------|', events).pipe(
        alerts(waiting, { scheduler }),
        map(({ type }) => type),
      )
      expectObservable(types).toBe('-p--fr-p--f--r---|', {
        p: 'alert.pending',
        f: 'alert.firing',
        r: 'alert.resolved',
      })
      const short = defineRules([
        { alert: 'Short', on: ['monitor.event_stream'], count: { over: 2, gte: 1 }, for: 3, lateness: 0 },
      ])
      const ended = cold('-ab-----|', events).pipe(
        alerts(short, { scheduler }),
        map(({ type }) => type),
      )
      expectObservable(ended).toBe('-p--i---|', { p: 'alert.pending', i: 'alert.inactive' })
    }))

  it('completes at once, though an alert fires', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const types = cold('-ab|', events).pipe(
        alerts(burst, { scheduler }),
        map(({ type }) => type),
      )
      expectObservable(types).toBe('--f|', { f: 'alert.firing' })
    }))

  it('fails with the source, and ends its wait when it is unsubscribed', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const operator = alerts(burst, { scheduler })
      expectObservable(cold('-a#', events).pipe(operator)).toBe('--#')
      const endless = cold('-a-------', events)
      expectObservable(endless.pipe(operator), '^---!').toBe('-')
      expectSubscriptions(endless.subscriptions).toBe('^---!')
    }))

  it('reads what a gateway records only where a rule names it', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const rules = defineRules([
        { alert: 'Any', count: { over: 3, gte: 1 }, lateness: 0 },
        { alert: 'Revoked', on: ['gateway.revoked'], count: { over: 3, gte: 1 }, lateness: 0 },
      ])
      const names = cold('-r|', { r: revokedEvent({ sub: 'ada', grant: null }, '1', 0) }).pipe(
        alerts(rules, { scheduler }),
        map(({ data }) => data.alert),
      )
      expectObservable(names).toBe('-r|', { r: 'Revoked' })
    }))
})
