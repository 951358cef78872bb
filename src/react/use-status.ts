import { useMemo } from 'react'
import type { LiveStatus, LiveStore, LiveView } from '../live/live.ts'
import { useSelection } from './use-selection.ts'
import { whole } from './use-view.ts'

/** The same on the server and while its HTML is hydrated, when times differ. */
const ON_SERVER: LiveStatus = { state: 'connecting', since: 0 }

/** The status of a view, or of a whole connection: `connecting`, `live`, `stale`, `offline` or `denied`, since when, and why. */
export function useStatus(of: LiveView<unknown> | { readonly status: LiveStore<LiveStatus> }): LiveStatus {
  const store = useMemo(() => statusStore(of), [of])
  return useSelection(store, whole, Object.is)
}

function statusStore(of: Parameters<typeof useStatus>[0]) {
  if (!('address' in of)) {
    const { status } = of
    return {
      subscribe: (listener: () => void) => status.subscribe(listener),
      getSnapshot: () => status.getSnapshot(),
      getServerSnapshot: () => ON_SERVER,
    }
  }
  return {
    subscribe: (listener: () => void) => of.subscribe(listener),
    getSnapshot: () => of.status(),
    getServerSnapshot: () => of.getServerSnapshot().status,
  }
}
