import type { SourceStream, StreamItem } from '../../sources/shapes/stream-item.ts'
import type { Pauses } from './pauses.ts'
import { StreamProgress } from './stream-progress.ts'
import { StreamsBehind } from './streams-behind.ts'
import type { ReadStream } from './streams-behind.ts'

/** The time up to which the streams of a recording, or of one part of it, are complete. */
export class RecordingProgress {
  /** The streams that are not waited for. */
  readonly behind: StreamsBehind
  readonly #streams = new Map<string, ReadStream & { readonly progress: StreamProgress }>()
  readonly #pauses: Pauses
  readonly #isListed: () => boolean
  #through = -Infinity

  /**
   * @param isListed Whether the streams are known. Nothing is complete before.
   * @param maxHold How long processes wait for a source that is behind, in ms.
   */
  constructor(pauses: Pauses, isListed: () => boolean, maxHold: number) {
    this.behind = new StreamsBehind(maxHold)
    this.#pauses = pauses
    this.#isListed = isListed
  }

  /** They were complete up to this time before, in Unix ms. */
  resume(through: number): void {
    this.#through = Math.max(this.#through, through)
  }

  /**
   * A stream is read from now on.
   *
   * @param through The time up to which it is known to be complete. Default: it is not known.
   */
  join({ name, source, isPolled }: SourceStream & { readonly isPolled: boolean }, through?: number): void {
    this.#streams.set(name, { name, source, progress: new StreamProgress(isPolled, through) })
  }

  /** A stream has ended, or is read no longer. */
  leave(name: string): void {
    this.#streams.delete(name)
    this.behind.found(name)
  }

  /** A stream has emitted an item. */
  took(item: StreamItem, now: number): void {
    this.#streams.get(item.stream.name)?.progress.took(item, now, this.#pauses.last(now))
    const { kind, stream } = item
    if (kind === 'lost') this.behind.lost(stream.name)
    else if (kind !== 'polling') this.behind.found(stream.name)
  }

  /** The time up to which all of them are complete that are waited for. It never goes back. */
  look(now: number): number {
    const pause = this.#pauses.last(now)
    for (const { progress } of this.#streams.values()) progress.look(now, pause)
    // If none of them holds anything yet, it is complete up to now, and may stand still later.
    if (this.#isListed())
      this.#through = Math.max(this.#through, this.behind.look(this.#streams, now, this.#through))
    return this.#through
  }
}
