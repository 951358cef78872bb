import { defer, of, Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { mergeMembers, setOf } from '../../src/sources/merge-members.ts'
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

describe('merging the members of a changing set', () => {
  it('unsubscribes from removed members, subscribes to new ones, and keeps the others subscribed', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const a = cold<string>('---1---1---1')
      const b = cold<string>('-2-------2|')
      const changing = hot('a-a--2----b------0--|', sets)
      const result = changing.pipe(mergeMembers(({ id }) => (id === 'a' ? a : b)))
      expectObservable(result).toBe('---1--21------2-----|')
      expectSubscriptions(changing.subscriptions).toBe('^-------------------!')
      expectSubscriptions(a.subscriptions).toBe('^---------!')
      expectSubscriptions(b.subscriptions).toBe('-----^---------!')
    }))

  it('resubscribes to a member whose options change', () =>
    inVirtualTime(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const member = cold<string>('-1-----')
      const limits: (number | undefined)[] = []
      const result = hot('a--A--A--|', sets).pipe(
        mergeMembers(({ limit }) => {
          limits.push(limit)
          return member
        }),
      )
      expectObservable(result, '^--------!').toBe('-1--1----')
      expectSubscriptions(member.subscriptions).toBe(['^--!', '---^-----!'])
    }))

  it('subscribes again to a completed member only after it was removed and added', () =>
    inVirtualTime(({ hot, expectObservable }) => {
      const result = hot('a-2-b-2-|', sets).pipe(mergeMembers(({ id }) => of(id)))
      expectObservable(result).toBe('a-b---a-|')
    }))

  it('completes when the sets and all members have', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const result = cold('a-|', sets).pipe(mergeMembers(() => cold('-----x|')))
      expectObservable(result).toBe('-----x|')
    }))

  it('passes on an error of the sets or of a member, and unsubscribes from all', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const member = cold<string>('-1-----')
      expectObservable(cold('a--#', sets).pipe(mergeMembers(() => member))).toBe('-1-#')
      expectSubscriptions(member.subscriptions).toBe('^--!')
      expectObservable(cold('a---', sets).pipe(mergeMembers(() => cold('--#')))).toBe('--#')
    }))

  it('does not subscribe to a member that was removed while another one was being subscribed to', () => {
    const changing = new Subject<ReadonlyMap<string, Named>>()
    const subscribed: string[] = []
    const member = (id: string) =>
      defer(() => {
        subscribed.push(id)
        return of(id)
      })

    changing.pipe(mergeMembers(({ id }) => member(id))).subscribe(() => changing.next(sets.b))
    changing.next(sets[2])

    expect(subscribed).toEqual(['b'])
  })

  it('rejects an id with two different options, and counts equal members once', () => {
    expect([...setOf('x', [{ id: 'a' }, { id: 'a' }]).keys()]).toEqual(['a'])
    expect(() => setOf<Named>('monitors', [{ id: 'a' }, { id: 'a', limit: 1 }])).toThrow(/monitors\[1\]/)
  })
})
