import { parseJson } from '../../protocol/json.ts'
import { caughtUpEvent } from '../../protocol/log-event.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import { listOf, StoredNameLists } from './name-lists.ts'
import type { RecordedStream, Recorder } from './recorder.ts'
import type { StreamBehind } from './streams-behind.ts'

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

/** Removes the progress of a recording. Rejects with a `LogInUseError` while it runs. Processes no longer wait for its sources. */
export async function removeRecording(recorder: Recorder, recording: string): Promise<void> {
  const registry = new ProgressRegistry(recorder)
  // Held until the recorder is closed.
  for (const name of await registry.streamsOf(recording)) {
    const stream = await recorder.open(name)
    const sources = new Set(behindIn(stream.position).map(({ source }) => source))
    const position = progressPosition(throughOf(stream.position))
    for (const source of sources) {
      const key = `${name}:${stream.claim}:${source}`
      stream.add(caughtUpEvent(source, key, undefined, Date.now()), position)
    }
  }
  await registry.set(recording, [], recorder.ending)
}

/** Stores the time up to which a part is complete, and the streams for which it does not wait. */
export function moveProgress(
  stream: RecordedStream,
  through: number,
  behind?: readonly StreamBehind[],
): void {
  stream.move(progressPosition(through, behind))
}

/** The position of a part that is complete up to this time, but for the streams that are behind. */
export function progressPosition(through: number, behind: readonly StreamBehind[] = []): StreamPosition {
  const known = (time: number) => (Number.isFinite(time) ? time : null)
  return {
    text: () =>
      behind.length === 0
        ? String(through)
        : JSON.stringify([
            known(through),
            behind.map((each) => [each.name, each.source, known(each.through), known(each.until)]),
          ]),
  }
}

/** The time up to which a part was complete, in Unix ms; -Infinity if that is not known. */
export function throughOf(position: string | null | undefined): number {
  const parsed = parseJson(position ?? '')
  const through: unknown = Array.isArray(parsed) ? parsed[0] : parsed
  return typeof through === 'number' ? through : -Infinity
}

/** The streams of a part that were behind. */
export function behindIn(position: string | null | undefined): readonly StreamBehind[] {
  const parsed = parseJson(position ?? '')
  const streams: unknown = Array.isArray(parsed) ? parsed[1] : undefined
  if (!Array.isArray(streams)) return []
  return streams.flatMap((each: unknown) => {
    const [name, source, through, until]: readonly unknown[] = Array.isArray(each) ? each : []
    if (typeof name !== 'string' || typeof source !== 'string') return []
    const times = { through: timeOr(through, -Infinity), until: timeOr(until, Infinity) }
    return [{ name, source, ...times }]
  })
}

function timeOr(time: unknown, unknown: number): number {
  return typeof time === 'number' ? time : unknown
}
