import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react'

/** A store as `useSyncExternalStore` reads it. A method may use `this`. */
interface Store<Snapshot> {
  subscribe(listener: () => void): () => void
  getSnapshot(): Snapshot
  getServerSnapshot(): Snapshot
}

/**
 * The result of `select` for a store's snapshot. It stays the same value as long as `isEqual` returns true. `select` may be another
 * function in each render, and it may throw: React then renders again, and the error is thrown there if the rendering still selects it.
 */
export function useSelection<Snapshot, Selected>(
  store: Store<Snapshot>,
  select: (snapshot: Snapshot) => Selected,
  isEqual: (a: Selected, b: Selected) => boolean,
): Selected {
  const committed = useRef<{ readonly value: Selected } | undefined>(undefined)
  const subscribe = useCallback((listener: () => void) => store.subscribe(listener), [store])
  const [read, readServer] = useMemo(() => {
    let last: { readonly snapshot: Snapshot; readonly value: Selected } | undefined
    const selected = (snapshot: Snapshot): Selected => {
      if (last !== undefined && Object.is(last.snapshot, snapshot)) return last.value
      // Without an earlier call of this function: the value that the previous render committed, with its own function.
      const earlier = last ?? committed.current
      const made = select(snapshot)
      const value = earlier !== undefined && isEqual(earlier.value, made) ? earlier.value : made
      last = { snapshot, value }
      return value
    }
    return [() => selected(store.getSnapshot()), () => selected(store.getServerSnapshot())] as const
  }, [store, select, isEqual])

  const value = useSyncExternalStore(subscribe, read, readServer)
  useEffect(() => {
    committed.current = { value }
  }, [value])
  return value
}
