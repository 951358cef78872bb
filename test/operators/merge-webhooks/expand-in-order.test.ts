import { NEVER } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, it } from 'vitest'
import { expandInOrder } from '../../../operators/merge-webhooks/expand-in-order.ts'
import { inVirtualTime } from '../virtual-time.ts'

const pick = <T>(found: Readonly<Record<string, Observable<T>>>, value: string) => found[value] ?? NEVER

describe('expandInOrder', () => {
  it('keeps the order of the source, whichever inner observable completes first', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold('-1-2-3-|')
      const found = { 1: cold('------a|'), 2: cold('b|'), 3: cold('-c|') }
      const expanded = source.pipe(expandInOrder((value) => pick(found, value), 3))
      expectObservable(expanded).toBe('--------(abc|)')
    }))

  it('limits the number of concurrent inner observables', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const first = cold('----a|')
      const second = cold('--b|')
      const third = cold('-c|')
      const found = { 1: first, 2: second, 3: third }
      const expanded = cold('(123|)').pipe(expandInOrder((value) => pick(found, value), 2))
      expectObservable(expanded).toBe('-----(abc|)')
      expectSubscriptions(first.subscriptions).toBe('^----!')
      expectSubscriptions(second.subscriptions).toBe('^--!')
      expectSubscriptions(third.subscriptions).toBe('---^-!')
    }))

  it('passes on an error and unsubscribes from the others', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('12---')
      const first = cold('----a|')
      const found = { 1: first, 2: cold('-#') }
      expectObservable(source.pipe(expandInOrder((value) => pick(found, value), 2))).toBe('--#')
      expectSubscriptions(source.subscriptions).toBe('^-!')
      expectSubscriptions(first.subscriptions).toBe('^-!')
    }))

  it('unsubscribes from every inner observable when it is unsubscribed', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const found = cold('----a|')
      expectObservable(cold('12---').pipe(expandInOrder(() => found, 2)), '^--!').toBe('----')
      expectSubscriptions(found.subscriptions).toBe(['^--!', '-^-!'])
    }))
})
