import type { ResearchEvent } from '../../protocol/event.ts'
import type { StreamItem } from '../../sources/shapes/stream-item.ts'
import type { MemberStream } from '../../sources/watched-streams.ts'
import type { FollowedMonitor } from './followed-monitor.ts'
import { Reachability } from './reachability.ts'
import type { RecordedStream, Recorder } from './recorder.ts'
import type { RecordingParts } from './recording-parts.ts'
import type { RecordingProgress } from './recording-progress.ts'
import type { WebhookDrain } from './webhook-drain.ts'

/** Settings of {@link Upstream}. */
interface UpstreamSettings {
  readonly recorder: Recorder
  /** Waits for a stream that another recording has, until this signal is aborted. Default: such a stream is an error. */
  readonly wait: AbortSignal | undefined
  /** Whether a stream that another recording has claimed is waited for anew. Otherwise the recorder fails. */
  readonly waitsAgain: boolean
  /** Records webhooks, which wait for the polls of monitors. */
  readonly drain: WebhookDrain | undefined
  /** The parts of the recording, which say how far it is; undefined if it does not. */
  readonly parts: RecordingParts | undefined
  readonly now: () => number
  /** Called after an event was passed to the recorder. */
  readonly onEvent: (event: ResearchEvent) => void
  /** Called when a source is no longer subscribed to. */
  readonly onLeave: () => void
}

/** A source whose streams are subscribed to. */
interface UpstreamSource {
  readonly reachability: Reachability
  /** The monitor that is polled here, if webhooks are recorded. */
  monitor: FollowedMonitor | undefined
}

interface ClaimedStream {
  readonly stream: RecordedStream
  readonly member: UpstreamSource
  readonly progress: RecordingProgress | undefined
  readonly isPolled: boolean
}

/** The upstream streams of a recording: claims each before it is opened, and passes its items to the recorder. */
export class Upstream {
  readonly #settings: UpstreamSettings
  /** When the recording began, in Unix ms. */
  readonly #startedAt: number
  /** The members, by the signal that ends each. */
  readonly #members = new Map<AbortSignal, UpstreamSource>()
  /** The claimed streams, by name. */
  readonly #streams = new Map<string, ClaimedStream>()

  constructor(settings: UpstreamSettings) {
    this.#settings = settings
    this.#startedAt = settings.now()
  }

  /** Whether no source is subscribed to. */
  get isIdle(): boolean {
    return this.#members.size === 0
  }

  /** Claims a stream. Resolves with the position from which it resumes. */
  async open(given: MemberStream, signal: AbortSignal, reopen: () => void): Promise<string | undefined> {
    const { recorder, wait, waitsAgain, drain, parts, now } = this.#settings
    const { name, source, isPolled } = given
    const member = this.#members.get(signal) ?? this.#join(source, signal)
    const progress = parts?.progressOf(source)
    // Before anything is awaited, so that nothing is complete without it.
    progress?.join(given)
    signal.addEventListener('abort', () => progress?.leave(name), { once: true })
    await parts?.claimed(source)
    signal.throwIfAborted()
    const follow = () => {
      if (isPolled) member.monitor ??= drain?.follow(source)
    }
    // While another recorder has the stream, webhooks do not wait for it.
    if (wait === undefined) follow()
    const onFenced = waitsAgain ? reopen : undefined
    const stream = await recorder.open(name, { wait, signal, onFenced })
    follow()
    // What came before is history: a first walk through the past holds nothing.
    if (stream.position === undefined) progress?.join(given, isPolled ? Infinity : now())
    this.#streams.set(name, { stream, member, progress, isPolled })
    return stream.position
  }

  /** Passes an item of a claimed stream to the recorder. */
  record(item: StreamItem): void {
    const claimed = this.#streams.get(item.stream.name)
    if (claimed === undefined) return
    const { stream, member, progress } = claimed
    progress?.took(item, this.#settings.now())
    switch (item.kind) {
      case 'event': {
        const { event, position, isBackfill = this.#isBackfill(stream, event) } = item
        stream.add(event, position, isBackfill)
        return this.#settings.onEvent(event)
      }
      case 'reached':
        return member.reachability.reached(stream)
      case 'lost':
        return member.reachability.lost(stream, item.error)
      case 'polling':
        return member.monitor?.polling()
      case 'caughtUp':
        if (item.position !== undefined) stream.move(item.position)
        // Anything but a poll has ended.
        if (!claimed.isPolled) progress?.leave(stream.name)
        return member.monitor?.caughtUp()
      case 'alive':
        return
    }
  }

  #join(source: string, signal: AbortSignal): UpstreamSource {
    const { drain, now, onLeave } = this.#settings
    const member: UpstreamSource = { reachability: new Reachability(source, now), monitor: undefined }
    this.#members.set(signal, member)
    const leave = () => {
      if (member.monitor !== undefined) drain?.unfollow(source, member.monitor)
      this.#members.delete(signal)
      onLeave()
    }
    signal.addEventListener('abort', leave, { once: true })
    return member
  }

  /** Whether an event of a stream without a position happened before the recording began. */
  #isBackfill(stream: RecordedStream, { time }: ResearchEvent): boolean {
    return stream.position === undefined && time !== null && Date.parse(time) < this.#startedAt
  }
}
