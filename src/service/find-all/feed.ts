import { NO_EVENTS } from '../../http/server-sent-events.ts'
import type { Clock } from '../clock.ts'
import type { EventFeed } from '../http/event-stream.ts'
import type { FindAllStore } from './store.ts'

/** Interval of the status on a stream, in ms of real time; beyond the interface document. */
const HEARTBEAT = 10_000

/**
 * The events of a run after a position, until the run has ended and all are read. The current status is repeated every 10 s,
 * with the id of the last event, so that a client that resumes from it misses nothing.
 *
 * @param clock The clock of connections: real time, except in tests.
 */
export function findAllFeed(store: FindAllStore, id: string, after: number, clock: Clock): EventFeed {
  let reached = after
  let isHeartbeatDue = false
  return {
    next() {
      const page = store.log.read(id, reached)
      reached = page.position
      if (page.events.count > 0 || !isHeartbeatDue) return page.events
      isHeartbeatDue = false
      const run = store.run(id)
      if (run?.status.is_active !== true) return NO_EVENTS
      return store.log.status(run, reached, new Date(store.now()).toISOString())
    },
    get ended() {
      return store.run(id)?.status.is_active !== true
    },
    onMore(listener) {
      let cancel: () => void
      const wait = () => {
        cancel = clock.schedule(HEARTBEAT, () => {
          isHeartbeatDue = true
          listener()
          wait()
        })
      }
      wait()
      const remove = store.changes.on(id, listener)
      return () => {
        cancel()
        remove()
      }
    },
  }
}
