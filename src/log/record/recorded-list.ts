import { BehaviorSubject, combineLatest, finalize, isObservable, map, tap } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { isObject } from '../../protocol/json.ts'
import type { Watched } from '../../sources/watched-streams.ts'
import { LogError } from '../errors.ts'

/** Whether a source is to be recorded here. */
export type IsOwn = (source: string) => boolean

/** Settings of a {@link RecordedList}. */
interface ListSettings {
  /** The source of an entry with this id. */
  readonly sourceOf: (id: string) => string
  /** What this recording has of all sources; undefined if it has all of them. */
  readonly isOwn: Observable<IsOwn> | undefined
  /** Called when an Observable of arrays has completed. */
  readonly onComplete: () => void
}

/** A list of a recording: an array, which can be replaced, or an Observable of arrays. */
export class RecordedList<Entry> {
  /** Emits each list, with the entries that are to be recorded here. An array never completes. */
  readonly lists: Observable<readonly Entry[]>
  readonly #argument: string
  readonly #array: BehaviorSubject<readonly Entry[]> | undefined
  #hasEmitted = false
  #isComplete = false

  constructor(argument: string, given: Watched<Entry>, { sourceOf, isOwn, onComplete }: ListSettings) {
    this.#argument = argument
    let all: Observable<readonly Entry[]>
    if (isObservable(given)) {
      all = given.pipe(
        tap(() => (this.#hasEmitted = true)),
        finalize(() => {
          this.#isComplete = true
          onComplete()
        }),
      )
    } else {
      all = this.#array = new BehaviorSubject(given)
    }
    this.lists = isOwn === undefined ? all : ownLists(all, isOwn, sourceOf)
  }

  /** Whether entries may be added by an Observable. */
  get isGrowing(): boolean {
    return this.#array === undefined && !this.#isComplete
  }

  /** Whether its entries are known: an Observable has to emit the first list, or to end. */
  get isKnown(): boolean {
    return this.#array !== undefined || this.#hasEmitted || this.#isComplete
  }

  /** Whether it is an array without entries. */
  get isEmpty(): boolean {
    return this.#array?.value.length === 0
  }

  /** Throws an ArgumentError for a list that is an Observable. */
  checkSettable(): void {
    if (this.#array !== undefined) return
    const message = `${this.#argument} was given as an Observable: emit the new list from it`
    throw new ArgumentError(this.#argument, { message }, undefined)
  }

  set(entries: readonly Entry[]): void {
    if (this.#array === undefined) throw new LogError(`${this.#argument} cannot be set`)
    this.#array.next(entries)
  }
}

/** Emits the entries whose sources are to be recorded here, when a list or that changes. */
function ownLists<Entry>(
  lists: Observable<readonly Entry[]>,
  isOwn: Observable<IsOwn>,
  sourceOf: (id: string) => string,
): Observable<readonly Entry[]> {
  return combineLatest([lists, isOwn]).pipe(
    map(([entries, isOwnSource]) => {
      // The subscriber refuses what is not a list of entries.
      if (!Array.isArray(entries)) return entries
      return entries.filter((entry: Entry) => {
        const id = isObject(entry) ? entry['id'] : entry
        return typeof id !== 'string' || isOwnSource(sourceOf(id))
      })
    }),
  )
}
