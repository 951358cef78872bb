import { useCallback, useSyncExternalStore } from 'react'
import type { Live, LiveStatus, LiveView, ViewSnapshot } from '../../live/live.ts'
import type { ViewShapes } from '../../protocol/live.ts'

export function useView<Row>(view: LiveView<Row>): ViewSnapshot<Row> {
  const subscribe = useCallback((listener: () => void) => view.subscribe(listener), [view])
  return useSyncExternalStore(subscribe, () => view.getSnapshot())
}

export function useStatus(live: Pick<Live<ViewShapes>, 'status'>): LiveStatus {
  const subscribe = useCallback((listener: () => void) => live.status.subscribe(listener), [live])
  return useSyncExternalStore(subscribe, () => live.status.getSnapshot())
}
