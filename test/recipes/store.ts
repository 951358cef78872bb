import type { Observable } from 'rxjs'

/** The state of an Observable for a component. */
export interface Snapshot<T> {
  readonly value: T
  /** Undefined unless the Observable errored. */
  readonly error?: unknown
  readonly done: boolean
}

/** Adapts an Observable to `useSyncExternalStore`. Each `subscribe` creates a subscription. */
export function storeOf<T>(source: Observable<T>, initial: T) {
  let snapshot: Snapshot<T> = { value: initial, done: false }
  return {
    subscribe(changed: () => void): () => void {
      const show = (next: Snapshot<T>) => {
        snapshot = next
        changed()
      }
      const subscription = source.subscribe({
        next: (value) => show({ value, done: false }),
        error: (error: unknown) => show({ value: snapshot.value, error, done: true }),
        complete: () => show({ value: snapshot.value, done: true }),
      })
      return () => subscription.unsubscribe()
    },
    getSnapshot: (): Snapshot<T> => snapshot,
  }
}
