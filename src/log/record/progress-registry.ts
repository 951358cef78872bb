import { listOf, StoredNameLists } from './name-lists.ts'
import type { RecordedStream, Recorder } from './recorder.ts'

/** The stream whose position is the list of all progress of a log: the names of all parts, by the name of their recording. */
export const PROGRESS_STREAM = 'progress'

/** The names under which the recordings of a log keep their progress. Those that have stopped are among them, until they are removed. */
export class ProgressRegistry {
  readonly #recorder: Recorder
  readonly #parts: StoredNameLists

  constructor(recorder: Recorder) {
    this.#recorder = recorder
    this.#parts = new StoredNameLists(recorder, PROGRESS_STREAM)
  }

  /** The names of the streams whose positions are the progress of the log's recordings. */
  async streams(): Promise<readonly string[]> {
    return Object.values(await this.#parts.read()).flat()
  }

  /** The same for one recording. */
  async streamsOf(recording: string): Promise<readonly string[]> {
    return listOf(await this.#parts.read(), recording)
  }

  /** The time up to which each of these is complete, in Unix ms; -Infinity if that is not known. */
  async through(streams: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const positions = streams.length === 0 ? [] : await this.#recorder.positions(streams)
    return new Map(streams.map((name, n) => [name, throughOf(positions[n])]))
  }

  /** Sets the parts of a recording. Without any, the recording is forgotten. */
  set(recording: string, streams: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#parts.set(recording, streams, signal)
  }
}

/** Removes the progress of a recording. Rejects with a `LogInUseError` while it runs. */
export async function removeRecording(recorder: Recorder, recording: string): Promise<void> {
  const registry = new ProgressRegistry(recorder)
  // Held until the recorder is closed.
  for (const stream of await registry.streamsOf(recording)) await recorder.open(stream)
  await registry.set(recording, [], recorder.ending)
}

/** Stores the time up to which a part is complete. */
export function moveProgress(stream: RecordedStream, through: number): void {
  stream.move({ text: () => String(through) })
}

/** The time up to which a part was complete, in Unix ms; -Infinity if that is not known. */
export function throughOf(position: string | null | undefined): number {
  const through = Number(position ?? Number.NaN)
  return Number.isFinite(through) ? through : -Infinity
}
