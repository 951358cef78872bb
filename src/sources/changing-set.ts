import { defer, mergeMap, ReplaySubject, takeUntil } from 'rxjs'
import type { Observable, OperatorFunction } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'

/** A member of a set: what has the same id and the same options is the same member. */
export interface Member {
  readonly id: string
}

/**
 * Follows each member of a set that changes.
 *
 *     sets:     --[a]----[a,b]-----[b]--|
 *     a:          -1---2---3---4---5        left at [b]
 *     b:                 ---6---7---|
 *               followEach(open)
 *     result:   ---1---2-6-3---74--|        at [a,b], `a` goes on undisturbed
 *
 * A member that ended is not opened again as long as it stays in the set. Completes when the sets have, and each member that is
 * left. An error of the sets or of a member passes through; unsubscribing leaves all members.
 */
export function followEach<M extends Member, R>(
  open: (member: M) => Observable<R>,
): OperatorFunction<ReadonlyMap<string, M>, R> {
  return (sets) =>
    defer(() => {
      const opened = new Map<string, Opened<M>>()
      return sets.pipe(
        mergeMap((set) => {
          for (const [id, { member, left }] of opened) {
            if (isSame(member, set.get(id))) continue
            opened.delete(id)
            left.next()
          }
          const added = [...set.values()].filter(({ id }) => !opened.has(id))
          return added.map((member) => {
            const entry = { member, left: new ReplaySubject<void>(1) }
            opened.set(member.id, entry)
            return entry
          })
        }),
        mergeMap(({ member, left }) => open(member).pipe(takeUntil(left))),
      )
    })
}

interface Opened<M> {
  readonly member: M
  /** Emits when it is left: to late subscribers too, since a set may change while members are being opened. */
  readonly left: ReplaySubject<void>
}

/**
 * A set by its ids. Repeated members count once.
 *
 * @throws ArgumentError where one id stands there with different options.
 */
export function setOf<M extends Member>(argument: string, members: readonly M[]): ReadonlyMap<string, M> {
  const set = new Map<string, M>()
  for (const [index, member] of members.entries()) {
    const other = set.get(member.id)
    if (other !== undefined && !isSame(other, member))
      throw new ArgumentError(`${argument}[${index}]`, 'each id once, or with the same options', member.id)
    set.set(member.id, member)
  }
  return set
}

function isSame(one: Member, other: Member | undefined): boolean {
  if (other === undefined) return false
  const [mine, theirs] = [given(one), given(other)]
  return mine.size === theirs.size && [...mine].every(([name, value]) => Object.is(value, theirs.get(name)))
}

/** An option that is undefined is one that is not given. */
function given(member: Member): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(member).filter(([, value]) => value !== undefined))
}
