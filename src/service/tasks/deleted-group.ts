import { firstOf, NO_EVENTS } from '../http/event-batch.ts'
import type { EventFeed } from '../http/event-stream.ts'
import type { DeletedGroup, Faults } from '../faults.ts'

/** Whether to respond with 404 to a request for the group; counts as a strike of `deleted-group`. */
export function refuseDeleted(faults: Faults, groupId: string): boolean {
  return faults.take('deleted-group', (fault) => isGone(fault, groupId)) !== undefined
}

/** A group's feed that ends when the fault `deleted-group` strikes. */
export function deletable(feed: EventFeed, faults: Faults, groupId: string): EventFeed {
  const isDeleted = () => faults.find('deleted-group', (fault) => isGone(fault, groupId)) !== undefined
  let sent = 0
  return {
    next() {
      if (isDeleted()) return NO_EVENTS
      const events = feed.next()
      sent += events.count
      const due = faults.find('deleted-group', ({ group, after = 0 }) => {
        return (group ?? groupId) === groupId && after <= sent
      })
      if (due === undefined) return events
      // From now on the fault applies to this group only, and to every request for it.
      faults.replace(due, { ...due, group: groupId, after: 0 })
      return firstOf(events, Math.max(0, events.count - (sent - (due.after ?? 0))))
    },
    get ended() {
      return isDeleted() || feed.ended
    },
    onMore: (listener) => feed.onMore(listener),
  }
}

function isGone({ group, after = 0 }: DeletedGroup, groupId: string): boolean {
  return after === 0 && (group ?? groupId) === groupId
}
