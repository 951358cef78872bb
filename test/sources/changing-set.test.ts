import { defer, of, Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { followEach, setOf } from '../../src/sources/changing-set.ts'
import { inVirtualTime } from '../operators/virtual-time.ts'

interface Named {
  readonly id: string
  readonly limit?: number | undefined
}

const sets = {
  0: setOf<Named>('x', []),
  a: setOf<Named>('x', [{ id: 'a' }]),
  A: setOf<Named>('x', [{ id: 'a', limit: Infinity }]),
  b: setOf<Named>('x', [{ id: 'b' }]),
  2: setOf<Named>('x', [{ id: 'b' }, { id: 'a', limit: undefined }]),
}

describe('a set that changes', () => {
  it('leaves what is no more in it, opens what is new, and what stays goes on undisturbed', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const a = cold<string>('---1---1---1')
      const b = cold<string>('-2-------2|')
      const changing = hot('a-a--2----b------0--|', sets)
      const result = changing.pipe(followEach(({ id }) => (id === 'a' ? a : b)))
      expectObservable(result).toBe('---1--21------2-----|')
      expectSubscriptions(changing.subscriptions).toBe('^-------------------!')
      expectSubscriptions(a.subscriptions).toBe('^---------!')
      expectSubscriptions(b.subscriptions).toBe('-----^---------!')
    }))

  it('opens a member anew that has other options', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const member = cold<string>('-1-----')
      const limits: (number | undefined)[] = []
      const result = hot('a--A--A--|', sets).pipe(
        followEach(({ limit }) => {
          limits.push(limit)
          return member
        }),
      )
      expectObservable(result, '^--------!').toBe('-1--1----')
      expectSubscriptions(member.subscriptions).toBe(['^--!', '---^-----!'])
    }))

  it('opens a member once that ended, until it was left and is there again', () =>
    inVirtualTime(({ hot, expectObservable }) => {
      const result = hot('a-2-b-2-|', sets).pipe(followEach(({ id }) => of(id)))
      expectObservable(result).toBe('a-b---a-|')
    }))

  it('completes when the sets have and each member that is left', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const result = cold('a-|', sets).pipe(followEach(() => cold('-----x|')))
      expectObservable(result).toBe('-----x|')
    }))

  it('passes errors on, of the sets and of a member, and leaves all', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const member = cold<string>('-1-----')
      expectObservable(cold('a--#', sets).pipe(followEach(() => member))).toBe('-1-#')
      expectSubscriptions(member.subscriptions).toBe('^--!')
      expectObservable(cold('a---', sets).pipe(followEach(() => cold('--#')))).toBe('--#')
    }))

  it('does not subscribe to what left while another member was being subscribed to', () => {
    const changing = new Subject<ReadonlyMap<string, Named>>()
    const subscribed: string[] = []
    const member = (id: string) =>
      defer(() => {
        subscribed.push(id)
        return of(id)
      })

    changing.pipe(followEach(({ id }) => member(id))).subscribe(() => changing.next(sets.b))
    changing.next(sets[2])

    expect(subscribed).toEqual(['b'])
  })

  it('refuses one id with two kinds of options, and counts what is repeated once', () => {
    expect([...setOf('x', [{ id: 'a' }, { id: 'a' }]).keys()]).toEqual(['a'])
    expect(() => setOf<Named>('monitors', [{ id: 'a' }, { id: 'a', limit: 1 }])).toThrow(/monitors\[1\]/)
  })
})
