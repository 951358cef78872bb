import type { LiveInspection, LiveStatus } from 'rivulet/live'

export const SINCE = Date.UTC(2026, 10, 22, 12)
const LIVE: LiveStatus = { state: 'live', since: SINCE }

export const GROUP = {
  address: 'group?group=tgrp_1',
  status: LIVE,
  rows: 10_000,
  position: 'p1',
  listeners: 2,
  gaps: 1,
  lastEvent: SINCE + 1,
}
export const ALERTS = {
  address: 'alerts',
  status: { state: 'connecting', since: 0 },
  rows: 0,
  position: undefined,
  listeners: 1,
  gaps: 0,
  lastEvent: 0,
} as const

/** A connection to inspect, whose state the test sets. */
export function inspected() {
  const listeners = new Set<(inspection: LiveInspection) => void>()
  const statusListeners = new Set<(status: LiveStatus) => void>()
  let inspection: LiveInspection = {
    role: 'leader',
    followers: 3,
    connection: { state: 'open', since: SINCE, lastBytes: SINCE + 1, behind: 12, failures: 0 },
    views: [GROUP, ALERTS],
  }
  return {
    listeners: () => listeners.size + statusListeners.size,
    become(next: Partial<LiveInspection>) {
      inspection = { ...inspection, ...next }
      for (const listener of listeners) listener(inspection)
    },
    status: {
      subscribe(listener: (status: LiveStatus) => void) {
        statusListeners.add(listener)
        return () => void statusListeners.delete(listener)
      },
      getSnapshot: () => LIVE,
    },
    inspect: {
      subscribe(listener: (seen: LiveInspection) => void) {
        listeners.add(listener)
        listener(inspection)
        return () => void listeners.delete(listener)
      },
      getSnapshot: () => inspection,
    },
  }
}
