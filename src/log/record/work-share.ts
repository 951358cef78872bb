import { defer, from, map, shareReplay, switchMap, tap } from 'rxjs'
import type { Observable } from 'rxjs'
import type { Partitions, SharingStore } from '../store/sharing-store.ts'
import type { IsOwn } from './recorded-list.ts'

/**
 * Emits which sources are one recording's, of those that several recordings divide, each time that this changes. Errors with an error of the
 * log, and never completes.
 *
 * @param signal Leaves the group.
 * @param onOwn Called with the partitions of this recording, before its sources are.
 */
export function workShare(
  sharing: SharingStore,
  group: string,
  signal: AbortSignal,
  onOwn: (own: ReadonlySet<number>, partitions: Partitions) => void,
): Observable<IsOwn> {
  return defer(() => sharing.partitions()).pipe(
    switchMap((partitions) =>
      from(sharing.share(`record:${group}`, partitions.count, signal)).pipe(
        tap((own) => onOwn(own, partitions)),
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
