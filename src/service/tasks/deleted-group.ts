import { firstOf, NO_EVENTS } from '../http/event-batch.ts'
import type { EventFeed } from '../http/event-stream.ts'
import type { DeletedGroup, Faults } from '../faults.ts'

/** Whether a request about the group is to be told that there is none; counted as a strike of `deleted-group`. */
export function refuseDeleted(faults: Faults, groupId: string): boolean {
  return faults.take('deleted-group', (fault) => hasGone(fault, groupId)) !== undefined
}

/** A group's feed that ends when the fault `deleted-group` takes the group away. */
export function deletable(feed: EventFeed, faults: Faults, groupId: string): EventFeed {
  const isDeleted = () => faults.find('deleted-group', (fault) => hasGone(fault, groupId)) !== undefined
  let told = 0
  return {
    next() {
      if (isDeleted()) return NO_EVENTS
      const events = feed.next()
      told += events.count
      const due = faults.find('deleted-group', ({ group, after = 0 }) => {
        return (group ?? groupId) === groupId && after <= told
      })
      if (due === undefined) return events
      // From now on it is about this group alone, and about every request.
      faults.replace(due, { ...due, group: groupId, after: 0 })
      return firstOf(events, Math.max(0, events.count - (told - (due.after ?? 0))))
    },
    get ended() {
      return isDeleted() || feed.ended
    },
    onMore: (listener) => feed.onMore(listener),
  }
}

function hasGone({ group, after = 0 }: DeletedGroup, groupId: string): boolean {
  return after === 0 && (group ?? groupId) === groupId
}
