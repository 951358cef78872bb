import { defer, from, map, shareReplay, switchMap } from 'rxjs'
import type { Observable } from 'rxjs'
import type { SharingStore } from '../store/sharing-store.ts'
import type { IsOwn } from './recorded-list.ts'

/**
 * Emits which sources are one recording's, of those that several recordings divide, each time that this changes. Errors with an error of the
 * log, and never completes.
 *
 * @param signal Leaves the group.
 */
export function workShare(sharing: SharingStore, group: string, signal: AbortSignal): Observable<IsOwn> {
  return defer(() => sharing.partitions()).pipe(
    switchMap((partitions) =>
      from(sharing.share(`record:${group}`, partitions.count, signal)).pipe(
        map(
          (own): IsOwn =>
            (source) =>
              own.has(partitions.of(source)),
        ),
      ),
    ),
    shareReplay({ bufferSize: 1, refCount: false }),
  )
}
