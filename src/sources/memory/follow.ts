import {
  concatMap,
  defer,
  delay,
  EMPTY,
  filter,
  isObservable,
  map,
  merge,
  NEVER,
  Observable,
  of,
  repeat,
  Subject,
  take,
  timer,
} from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions, checkWait } from '../../protocol/check.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { gateOf } from '../../protocol/gate.ts'
import { unorderedHash } from '../../protocol/identity.ts'
import type { MemoryRetrieveRequest } from '../../protocol/memory.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import { memoryRetrieveRequest } from '../../protocol/requests/memory.ts'
import { MAX_TIMER_DELAY } from '../../protocol/timer-limit.ts'
import type { Context } from '../context.ts'
import { openOrAborted } from '../shapes/backpressure.ts'
import { fromAsync } from '../shapes/from-async.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import { withReconnect } from '../shapes/with-reconnect.ts'
import { hasEnded } from '../tasks/ended.ts'
import { RETRIEVE, retrieval } from './retrieve.ts'
import type { MemoryResult } from './retrieve.ts'

/** Options of `memory.follow`: what to retrieve, and when. */
export interface FollowMemoryOptions extends MemoryRetrieveRequest, SourceOptions {
  /**
   * Events that this program receives anyway: of `client.watch`, or of a consumer of a log. After a run that ended, a detection of a
   * monitor or a match of FindAll, the memories are retrieved again, once for all events of a second. Default: none.
   */
  readonly events?: Observable<ResearchEvent>
  /**
   * Time between retrievals without such an event, in ms, with a jitter of ±10 %. `Infinity` retrieves after events alone.
   * Default 300,000.
   */
  readonly pollInterval?: number
}

/** The results of a query, and what has changed since the last emission. */
export interface MemoryUpdate {
  /** All results, best first. */
  readonly results: readonly MemoryResult[]
  /** Results that were not among the last ones; at first all. */
  readonly added: readonly MemoryResult[]
  /** Results that were among the last ones with another content, such as a monitor with a new event. */
  readonly changed: readonly MemoryResult[]
  /** The last ones that are no longer among the results. */
  readonly left: readonly MemoryResult[]
}

/** How long more events are awaited after the first, in ms. */
const COALESCING = 1_000

/**
 * Emits the results of a query, and again when some are new, changed or gone; not for another order alone. Failed retrievals are retried
 * with backoff. Retrieves nothing while the consumer pauses. Errors with the error of `events`; never completes.
 */
export function followMemory(context: Context, options: FollowMemoryOptions = {}): Source<MemoryUpdate> {
  checkOptions('memory.follow', options, [
    ...namesOf(memoryRetrieveRequest),
    'events',
    'pollInterval',
    'signal',
  ])
  const { events = EMPTY, pollInterval = 300_000, signal, ...request } = options
  checkRequest(memoryRetrieveRequest, request)
  checkWait('pollInterval', pollInterval, true)
  if (!isObservable(events)) throw new ArgumentError('events', 'an Observable', events)
  const { random, scheduler } = context

  const follow = new Observable<MemoryUpdate>((subscriber) => {
    // An event during a retrieval may announce what this retrieval has missed.
    let isWoken = false
    const wakes = new Subject<void>()
    const waking = events.pipe(filter(mayChangeMemories)).subscribe({
      next() {
        isWoken = true
        wakes.next()
      },
      error: (error: unknown) => subscriber.error(error),
    })
    subscriber.add(waking)
    const whenOpen = fromAsync<void>(async (opened, closing) => {
      const gate = gateOf(opened)
      if (gate?.closed === true) await openOrAborted(gate, closing)
      isWoken = false
      opened.next()
    })
    const pause = () => {
      const wait = Math.min(pollInterval * (0.9 + 0.2 * random()), MAX_TIMER_DELAY)
      const woken: Observable<unknown> = isWoken ? of(true) : wakes
      return merge(
        pollInterval === Infinity ? NEVER : timer(wait, scheduler),
        woken.pipe(take(1), delay(COALESCING, scheduler)),
      ).pipe(take(1))
    }
    const changes = new Changes()
    defer(() => whenOpen)
      .pipe(
        concatMap(() => retrieval(context, request)),
        withReconnect(context, RETRIEVE),
        repeat({ delay: pause }),
        map(({ results }) => changes.since(results)),
        filter((update) => update !== undefined),
      )
      .subscribe(subscriber)
  })
  return sourceOf(follow, signal)
}

/** Whether a memory may be new or changed by what has happened. */
function mayChangeMemories(event: ResearchEvent): boolean {
  switch (event.type) {
    case 'task_run.state':
      return hasEnded(event.data.run)
    case 'findall.status':
      return event.data.data.status.is_active !== true
    case 'findall.candidate.matched':
    case 'monitor.event_stream':
    case 'monitor.snapshot':
    case 'monitor.cancelled':
      return true
    default:
      return false
  }
}

/** Compares results with the last ones. */
class Changes {
  /** The last results, each with a hash of its content, by what they are about. */
  #last: ReadonlyMap<string, { readonly result: MemoryResult; readonly content: string }> | undefined

  /** What has changed; undefined if nothing has. The first results are all new. */
  since(results: readonly MemoryResult[]): MemoryUpdate | undefined {
    const last = this.#last
    const now = new Map(
      results.map((result) => {
        const content = unorderedHash(result)
        return [result.kind === 'unknown' ? content : `${result.kind} ${result.id}`, { result, content }]
      }),
    )
    this.#last = now
    const added: MemoryResult[] = []
    const changed: MemoryResult[] = []
    for (const [about, { result, content }] of now) {
      const before = last?.get(about)
      if (before === undefined) added.push(result)
      else if (before.content !== content) changed.push(result)
    }
    const left = Array.from(last ?? []).flatMap(([about, { result }]) => (now.has(about) ? [] : [result]))
    const isSame = last !== undefined && added.length + changed.length + left.length === 0
    return isSame ? undefined : { results, added, changed, left }
  }
}
