import type { LiveState, LiveStatus, LiveView, ViewSnapshot } from '../../src/live/live.ts'

/** A view whose rows the test sets. It counts its subscribers, and calls them at once. */
export interface TestView<Row> extends LiveView<Row> {
  readonly subscribers: () => number
  /** How often it was subscribed to. */
  readonly subscriptions: () => number
  readonly set: (...rows: readonly (readonly [key: string, row: Row])[]) => void
  readonly enter: (state: LiveState, error?: Error) => void
}

export function testView<Row = string>(
  rows: readonly (readonly [string, Row])[] | undefined = undefined,
  address = 'rows',
): TestView<Row> {
  const listeners = new Set<(snapshot: ViewSnapshot<Row>) => void>()
  let subscriptions = 0
  let snapshot: ViewSnapshot<Row> = {
    rows: new Map(rows),
    ready: rows !== undefined,
    status: { state: rows === undefined ? 'connecting' : 'live', since: 1 },
    gaps: 0,
  }
  const server = snapshot
  const become = (next: Partial<ViewSnapshot<Row>>) => {
    snapshot = { ...snapshot, ...next }
    for (const listener of listeners) listener(snapshot)
  }
  const statusOf = (state: LiveState, error?: Error): LiveStatus =>
    error === undefined ? { state, since: 2 } : { state, since: 2, error }
  return {
    address,
    subscribe(listener) {
      subscriptions++
      // The same function may subscribe twice.
      const own = (value: ViewSnapshot<Row>) => listener(value)
      listeners.add(own)
      own(snapshot)
      return () => void listeners.delete(own)
    },
    getSnapshot: () => snapshot,
    getServerSnapshot: () => server,
    status: () => snapshot.status,
    subscribers: () => listeners.size,
    subscriptions: () => subscriptions,
    set: (...changed) =>
      become({ rows: new Map([...snapshot.rows, ...changed]), ready: true, status: statusOf('live') }),
    enter: (state, error) => become({ status: statusOf(state, error) }),
  }
}
