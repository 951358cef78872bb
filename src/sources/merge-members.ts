import { defer, mergeMap, ReplaySubject, takeUntil } from 'rxjs'
import type { Observable, OperatorFunction } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'

/** A member of a set. Members with the same id and the same options are equal. */
export interface Member {
  readonly id: string
}

/**
 * Merges an inner observable for each member of a changing set.
 *
 *     sets:     --[a]----[a,b]-----[b]--|
 *     a:          -1---2---3---4---5        unsubscribed at [b]
 *     b:                 ---6---7---|
 *               mergeMembers(project)
 *     result:   ---1---2-6-3---74--|        `a` stays subscribed at [a,b]
 *
 * A member whose inner observable completed is not subscribed to again while it stays in the set. Completes when the sets and
 * all inner observables have. Errors pass through; unsubscribing unsubscribes from all members.
 */
export function mergeMembers<M extends Member, R>(
  project: (member: M) => Observable<R>,
): OperatorFunction<ReadonlyMap<string, M>, R> {
  return (sets) =>
    defer(() => {
      const active = new Map<string, ActiveMember<M>>()
      return sets.pipe(
        mergeMap((set) => {
          for (const [id, { member, removed }] of active) {
            if (isSame(member, set.get(id))) continue
            active.delete(id)
            removed.next()
          }
          const added = [...set.values()].filter(({ id }) => !active.has(id))
          return added.map((member) => {
            const entry = { member, removed: new ReplaySubject<void>(1) }
            active.set(member.id, entry)
            return entry
          })
        }),
        mergeMap(({ member, removed }) => project(member).pipe(takeUntil(removed))),
      )
    })
}

interface ActiveMember<M> {
  readonly member: M
  /** Replayed, since a set may change before the member is subscribed to. */
  readonly removed: ReplaySubject<void>
}

/**
 * Indexes the members by id. Equal members count once.
 *
 * @throws ArgumentError for two members with the same id and different options.
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
  const [mine, theirs] = [definedOptions(one), definedOptions(other)]
  return mine.size === theirs.size && [...mine].every(([name, value]) => Object.is(value, theirs.get(name)))
}

/** The options without those that are undefined. */
function definedOptions(member: Member): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(member).filter(([, value]) => value !== undefined))
}
