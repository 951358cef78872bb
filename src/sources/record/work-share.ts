import { defer, distinctUntilChanged, from, map, NEVER, shareReplay, switchMap } from 'rxjs'
import type { Observable } from 'rxjs'
import type { EventLog } from '../../log/event-log.ts'

/** The share of one recording in sources that several recordings divide. */
export class WorkShare {
  /** Whether a source is this recording's, by its source. */
  readonly #isOwn: Observable<(source: string) => boolean>

  /** @param signal Leaves the group. */
  constructor({ sharing }: Pick<EventLog, 'sharing'>, group: string, signal: AbortSignal) {
    this.#isOwn = defer(() => sharing.partitions()).pipe(
      switchMap((partitions) =>
        from(sharing.share(`record:${group}`, partitions.count, signal)).pipe(
          map((own) => (source: string) => own.has(partitions.of(source))),
        ),
      ),
      shareReplay({ bufferSize: 1, refCount: false }),
    )
  }

  /** Subscribes to these events while the source is this recording's. Errors with an error of the log, and never completes. */
  whileOwn<Event>(source: string, events: Observable<Event>): Observable<Event> {
    return this.#isOwn.pipe(
      map((isOwn) => isOwn(source)),
      distinctUntilChanged(),
      switchMap((isOwn) => (isOwn ? events : NEVER)),
    )
  }
}
