import { isObject, parseJson } from '../../protocol/json.ts'
import type { RecordedStream, Recorder } from './recorder.ts'

/** The stream whose position is the list of all progress of a log. */
const REGISTRY = 'progress'

/** The progress of one part of a recording, which the log keeps: the names of all parts, by the name of their recording. */
type Registered = Readonly<Record<string, readonly string[]>>

/** The names under which the recordings of a log keep their progress. Those that have stopped are among them, until they are removed. */
export class ProgressRegistry {
  readonly #recorder: Recorder

  constructor(recorder: Recorder) {
    this.#recorder = recorder
  }

  /** The names of the streams whose positions are the progress of the log's recordings. */
  async streams(): Promise<readonly string[]> {
    return Object.values(await this.#registered()).flat()
  }

  /** The same for one recording. */
  async streamsOf(recording: string): Promise<readonly string[]> {
    return (await this.#registered())[recording] ?? []
  }

  /** The time up to which each of these is complete, in Unix ms; -Infinity if that is not known. */
  async through(streams: readonly string[]): Promise<readonly number[]> {
    return (await this.#recorder.positions(streams)).map(throughOf)
  }

  /** Sets the parts of a recording. Without any, the recording is forgotten. */
  async set(recording: string, streams: readonly string[], signal: AbortSignal): Promise<void> {
    // It rarely changes, and its claim is for a moment.
    if (isSame(await this.streamsOf(recording), streams)) return
    const registry = await this.#recorder.openInTurn(REGISTRY, signal)
    try {
      const { [recording]: _, ...others } = registeredIn(registry.position)
      const all: Registered = streams.length === 0 ? others : { ...others, [recording]: streams }
      registry.move({ text: () => JSON.stringify(all) })
      await this.#recorder.flushed(registry)
    } finally {
      await registry.close()
    }
  }

  async #registered(): Promise<Registered> {
    const [position] = await this.#recorder.positions([REGISTRY])
    return registeredIn(position)
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

function registeredIn(position: string | null | undefined): Registered {
  const parsed = parseJson(position ?? '')
  if (!isObject(parsed)) return {}
  return Object.fromEntries(
    Object.entries(parsed).map(([name, streams]) => [
      name,
      Array.isArray(streams) ? streams.filter((each) => typeof each === 'string') : [],
    ]),
  )
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((each, n) => each === other[n])
}
