import { BehaviorSubject, finalize, isObservable } from 'rxjs'
import type { Observable } from 'rxjs'
import { LogError } from '../../log/errors.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import type { Watched } from '../watched-streams.ts'

/** A list of a recording: an array, which can be replaced, or an Observable of arrays. */
export class RecordedList<Entry> {
  /** Emits each list. An array never completes. */
  readonly lists: Observable<readonly Entry[]>
  readonly #argument: string
  readonly #array: BehaviorSubject<readonly Entry[]> | undefined
  #isComplete = false

  /** @param onComplete Called when an Observable of arrays has completed. */
  constructor(argument: string, given: Watched<Entry>, onComplete: () => void) {
    this.#argument = argument
    if (!isObservable(given)) {
      this.#array = new BehaviorSubject(given)
      this.lists = this.#array
      return
    }
    this.lists = given.pipe(
      finalize(() => {
        this.#isComplete = true
        onComplete()
      }),
    )
  }

  /** Whether entries may be added by an Observable. */
  get isGrowing(): boolean {
    return this.#array === undefined && !this.#isComplete
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
