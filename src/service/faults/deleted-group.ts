import { groupNotFound } from '../tasks/group-routes.ts'
import { firstOf, NO_EVENTS } from '../../http/server-sent-events.ts'
import type { EventFeed } from '../http/event-stream.ts'
import type { DeletedGroup, Faults } from './faults.ts'

/** The fault `deleted-group`: throws the 404 of a request for the group. */
export function refuseDeletedGroup(faults: Faults, groupId: string): void {
  const fault = faults.take('deleted-group', (armed) => isGone(armed, groupId))
  if (fault !== undefined) throw groupNotFound(groupId)
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
    onMore(listener) {
      const removers = [feed.onMore(listener), faults.onChange(listener)]
      return () => removers.forEach((remove) => remove())
    },
  }
}

function isGone({ group, after = 0 }: DeletedGroup, groupId: string): boolean {
  return after === 0 && (group ?? groupId) === groupId
}
