import type { ResearchEvent } from '../../protocol/event.ts'
import { behindEvent, caughtUpEvent } from '../../protocol/log-event.ts'
import { LogInUseError } from '../errors.ts'
import { UNDIVIDED } from '../store/sharing-store.ts'
import type { Partitions } from '../store/sharing-store.ts'
import type { ClockedPart } from './clock.ts'
import { behindIn, moveProgress, progressPosition, throughOf } from './progress-registry.ts'
import type { ProgressRegistry } from './progress-registry.ts'
import type { Pauses } from './pauses.ts'
import { RecordingProgress } from './recording-progress.ts'
import type { RecordedStream, Recorder } from './recorder.ts'
import type { SourceChange } from './streams-behind.ts'

/** What to do if another recording has the part: it may be the same one in another process, or one of other sources. */
const NAME_ADVICE =
  'end that recording first, or wait for it with `wait`; recordings of other sources each need a `name` of their own'

/** Settings of {@link RecordingParts}. */
interface PartSettings {
  readonly recorder: Recorder
  /** The name of the recording. */
  readonly name: string
  readonly registry: ProgressRegistry
  readonly isShared: boolean
  /** Waits for a part that another recording has, until this signal is aborted. Default: that is an error. */
  readonly wait: AbortSignal | undefined
  readonly pauses: Pauses
  /** Whether it has lists of sources. Otherwise a part is claimed for the first source that {@link Recording.set} adds. */
  readonly hasLists: boolean
  /** Whether the sources are known. */
  readonly isListed: () => boolean
  /** Called if a part that another recording has taken cannot be claimed again. */
  readonly onFailure: (error: unknown) => void
  /** How long processes wait for a source that is behind, in ms. */
  readonly maxHold: number
}

/** A part of a recording, and its progress under a claim. */
class RecordingPart implements ClockedPart {
  readonly progress: RecordingProgress
  readonly name: string
  readonly #settings: PartSettings
  readonly #ending = new AbortController()
  #stream: RecordedStream | undefined
  #saved = -Infinity
  #claimed: Promise<void> | undefined
  /** Number of changes of sources. */
  #changes = 0

  constructor(settings: PartSettings, name: string) {
    this.#settings = settings
    this.name = name
    const { pauses, isListed, maxHold } = settings
    this.progress = new RecordingProgress(pauses, isListed, maxHold)
    // Nobody may wait for it.
    if (settings.hasLists) this.claim().catch(() => {})
  }

  /** Resolves once this recording has it. Rejects if another one has. */
  claim(): Promise<void> {
    return (this.#claimed ??= this.#claim())
  }

  look(now: number): number | undefined {
    const stream = this.#stream
    if (stream === undefined) return undefined
    const through = this.progress.look(now)
    const { behind } = this.progress
    // Before the tick that passes a source, and in one transaction with the position.
    for (const change of behind.takeChanges()) {
      stream.add(this.#eventOf(change, stream, now), progressPosition(through, behind.all))
    }
    if (through > this.#saved) {
      this.#saved = through
      moveProgress(stream, through, behind.all)
    }
    return through
  }

  #eventOf(change: SourceChange, { claim }: RecordedStream, now: number): ResearchEvent {
    const { source } = change
    const key = `${this.name}:${claim}:${(this.#changes += 1)}`
    const { ahead } = this.#settings.recorder
    if (!change.isBehind) {
      const through = change.through && change.through - ahead
      return caughtUpEvent(source, key, through, now - ahead)
    }
    const { through, until } = change
    return behindEvent(source, key, { through: through - ahead, until: until - ahead }, now - ahead)
  }

  /** Another recording may have it from now on. */
  end(): void {
    this.#ending.abort()
    this.#stream = undefined
  }

  async #claim(): Promise<void> {
    const { recorder, wait, isShared, onFailure } = this.#settings
    const { signal } = this.#ending
    const onFenced = () => {
      this.#stream = undefined
      // It was suspended for longer than its lease: another member has the part, and may leave it.
      this.#claim().catch((error: unknown) => {
        if (!signal.aborted) onFailure(error)
      })
    }
    const options = isShared ? { wait, signal, onFenced } : { wait, signal }
    const stream = await recorder.open(this.name, options).catch((error: unknown) => {
      if (!(error instanceof LogInUseError)) throw error
      throw new LogInUseError('the log', error.claimed, error.owner, NAME_ADVICE)
    })
    this.#saved = throughOf(stream.position)
    this.progress.resume(this.#saved)
    this.progress.behind.resume(behindIn(stream.position))
    this.#stream = stream
  }
}

/** The parts of a recording: one, or one for each partition that it has of those that it shares. */
export class RecordingParts {
  readonly #settings: PartSettings
  readonly #parts = new Map<number, RecordingPart>()
  readonly #ending = new AbortController()
  #partitions = UNDIVIDED
  /** Resolves once the log knows of the parts. */
  #registered: Promise<void> | undefined

  constructor(settings: PartSettings) {
    this.#settings = settings
  }

  /** The parts of this recording. */
  get own(): Iterable<ClockedPart> {
    return this.#parts.values()
  }

  /** Sets which parts are those of this recording. */
  setOwn(own: ReadonlySet<number>, partitions: Partitions): void {
    this.#partitions = partitions
    for (const [part, each] of this.#parts) {
      if (own.has(part)) continue
      this.#parts.delete(part)
      each.end()
    }
    for (const part of own) {
      if (!this.#parts.has(part)) this.#parts.set(part, new RecordingPart(this.#settings, this.#nameOf(part)))
    }
  }

  /** The progress of the part of a source; undefined if the part is not of this recording. */
  progressOf(source: string): RecordingProgress | undefined {
    return this.#partOf(source)?.progress
  }

  /** Resolves once this recording has the part of a source. Rejects if another one has. */
  async claimed(source: string): Promise<void> {
    await this.#partOf(source)?.claim()
    const { registry, name } = this.#settings
    const { count } = this.#partitions
    const streams = Array.from({ length: count }, (_, part) => this.#nameOf(part))
    this.#registered ??= registry.set(name, streams, this.#ending.signal)
    await this.#registered
  }

  /** All sources have ended: the log forgets the recording. */
  async forget(): Promise<void> {
    const { registry, name } = this.#settings
    await registry.set(name, [], this.#ending.signal)
  }

  /** Ends what waits. */
  end(): void {
    this.#ending.abort()
  }

  #partOf(source: string): RecordingPart | undefined {
    return this.#parts.get(this.#partitions.of(source))
  }

  #nameOf(part: number): string {
    const { name, isShared } = this.#settings
    return `progress/${encodeURIComponent(name)}${isShared ? `/${part}` : ''}`
  }
}
