import type { LogClock, ResearchEvent } from '../../protocol/event.ts'
import { Gate } from '../../protocol/gate.ts'
import type { Observers } from '../../protocol/observers.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import { MAX_APPEND_ENTRIES, MAX_APPEND_LENGTH } from '../store/contract.ts'
import type { Fence, LogStore, NewEntry, StreamAppend } from '../store/contract.ts'
import { FencedError, LogError, LogInUseError, LogValueError } from '../errors.ts'
import type { InboxStore } from '../store/inbox-store.ts'
import { logObservers } from '../event-log/observer.ts'
import type { LogObserver } from '../event-log/observer.ts'
import { TOLERANCE } from '../store/log-clock.ts'
import { newEntry } from '../store/new-entry.ts'
import type { Retention } from '../event-log/retention.ts'
import { streamParts } from './stream-parts.ts'
import type { StreamChange } from './stream-parts.ts'
import { Turns } from './turns.ts'

/** Number of entries to be appended at which sources pause. They resume at half of it. */
const MAX_PENDING_ENTRIES = 1_000

/** Length of the entries to be appended, in characters of JSON, at which sources pause. They resume at half of it. */
const MAX_PENDING_LENGTH = 2 * MAX_APPEND_LENGTH

/** An upstream stream that is recorded, under its claim. */
export interface RecordedStream {
  readonly name: string
  /** The position from which the stream resumes; undefined at its beginning. */
  readonly position: string | undefined
  /**
   * Appends an event soon, and moves the stream to the position after it. Without a position it stays. Ignored once the
   * stream is closed or the recorder has failed.
   */
  add(event: ResearchEvent, position?: StreamPosition, backfill?: boolean): void
  /** Moves the stream soon, without an event. Ignored as {@link add}. */
  move(position: StreamPosition): void
  /** Appends an event as {@link add}, and after everything that any stream has added before. */
  tick(event: ResearchEvent, position: StreamPosition): void
  /**
   * Marks a delivery of the inbox as done, together with or after what was added before, of any stream. Only for the stream
   * under whose claim the inbox is recorded. Ignored as {@link add}.
   */
  done(delivery: string): void
  /** The number of its claim, which no other recording of the stream has. */
  readonly claim: number
  /** Appends the rest, and releases the stream. */
  close(): Promise<void>
}

/** Settings of {@link Recorder.open}. */
export interface OpenOptions {
  /** Waits for a name that another recorder holds, of this open log or of another one, until this signal is aborted. */
  readonly wait?: AbortSignal | undefined
  /** Closes the stream once it is aborted. A stream that is not open yet is not opened. */
  readonly signal?: AbortSignal | undefined
  /**
   * Called after the stream was closed because another recorder has claimed it. The other recorder records the events that were added
   * and not appended. Default: the recorder fails.
   */
  readonly onFenced?: ((error: FencedError) => void) | undefined
}

/** Callbacks of a recorder beside that of its failure. */
export interface RecorderReports {
  /** Called with the reader that keeps the log too large, and with null when recording goes on. */
  readonly onPause?: ((reader: string | null) => void) | undefined
  /** Called when the wall clock has jumped, or is right again. */
  readonly onClock?: ((change: LogClock) => void) | undefined
}

/** Settings of a {@link Recorder}. */
export interface RecorderOptions extends RecorderReports {
  readonly observers?: Observers<LogObserver> | undefined
  /** Retention, which deletes old entries between the appends. */
  readonly retention?: Retention | undefined
  /** Turns of names, which all recorders of the open log share. */
  readonly turns?: Turns | undefined
}

/** How an entry is added. */
interface AddedEntry {
  /** Whether it comes from a first walk into the past of its source. Default false. */
  readonly backfill?: boolean
  /** Whether it is appended after all that was added before, of any stream. Default false. */
  readonly isLast?: boolean
}

/** A change to append: an event, the position of a stream, or that a delivery is done. */
interface PendingChange extends StreamChange<OpenStream> {
  /** Length of the event as JSON, in characters. */
  readonly length: number
  readonly position?: StreamPosition | undefined
  readonly done?: string
  readonly isLast?: boolean
  /** The error of an event that cannot be appended. */
  readonly refused?: LogValueError
}

/**
 * Writes upstream streams into a log. Events that arrive during an append go into the next one, together with the positions of
 * their streams: so the log has an event if and only if its stream has moved past it.
 */
export class Recorder {
  /** Gate of all recorded sources. It is closed while the log is behind. */
  readonly gate = new Gate()
  readonly #store: LogStore
  readonly #onFailure: (error: unknown) => void
  readonly #observers: Observers<LogObserver>
  readonly #retention: Retention | undefined
  readonly #leaveRetention: () => void
  readonly #onClock: (change: LogClock) => void
  readonly #turns: Turns
  readonly #streams = new Set<OpenStream>()
  /** Promises of the streams that are being opened or closed, by name. */
  readonly #changing = new Map<string, Promise<void>>()
  readonly #ending = new AbortController()
  readonly #closed = Promise.withResolvers<void>()
  #closing: Promise<void> | undefined
  #pending: PendingChange[] = []
  #pendingLength = 0
  /** Resolves after the next append. */
  #step = Promise.withResolvers<void>()
  #isFlushing = false
  #failed = false
  #ahead = 0
  /** The time of the log at the last append that looked at the clock, and the monotonic clock then, both in ms. */
  #lookedAt: { readonly time: number; readonly monotonic: number } | undefined

  /** @param onFailure Called once, when the log has refused an append. Recording has ended. */
  constructor(
    store: LogStore,
    onFailure: (error: unknown) => void,
    {
      observers = logObservers(),
      retention,
      onPause = () => {},
      onClock = () => {},
      turns = new Turns(),
    }: RecorderOptions = {},
  ) {
    this.#onClock = onClock
    this.#turns = turns
    this.#store = store
    this.#onFailure = onFailure
    this.#observers = observers
    this.#retention = retention
    const pause = () => {
      this.#setGate()
      onPause(retention?.pausedBy ?? null)
    }
    this.#leaveRetention = retention?.onPause(pause) ?? (() => {})
    this.#setGate()
  }

  /** Aborted when the recorder is to be closed. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** Lead of the wall clock over the time of the log at the last append, in ms. Mostly 0. */
  get ahead(): number {
    return this.#ahead
  }

  /** Resolves once the recorder is closed, and every stream released. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /**
   * Claims a stream, after an earlier one of this name is closed. Rejects with a `LogInUseError` while another recorder has
   * it, of this open log or of another one, with the reason of an aborted signal, and with a `LogError` once the recorder is
   * closed.
   */
  open(name: string, options: OpenOptions = {}): Promise<RecordedStream> {
    // The last events of the earlier one are appended under its claim, and the position is read after them.
    const opening = this.#open(name, this.#changing.get(name), options)
    this.#change(
      name,
      opening.then(
        () => {},
        () => {},
      ),
    )
    return opening
  }

  /**
   * Opens a stream of the log itself, once no other recorder has it. Rejects with the reason of the signal, and once the
   * recorder is closed.
   */
  openInTurn(
    name: string,
    signal: AbortSignal,
    onFenced?: (error: FencedError) => void,
  ): Promise<RecordedStream> {
    return this.open(name, { wait: signal, signal, onFenced })
  }

  /** The webhooks that are to be recorded. */
  get inbox(): Pick<InboxStore, 'pending' | 'wait'> {
    return this.#store.inbox
  }

  /** The positions of streams in the log; null for one without. */
  positions(names: readonly string[]): Promise<readonly (string | null)[]> {
    return this.#store.streamPositions(names.map(streamName))
  }

  /** Appends an entry soon. */
  add(
    stream: OpenStream,
    event: ResearchEvent,
    position: StreamPosition | undefined,
    { backfill = false, isLast = false }: AddedEntry = {},
  ): void {
    if (this.#failed) return
    let entry: NewEntry
    try {
      entry = newEntry(event, backfill, { log: this.#store.name, stream: stream.fence.name })
    } catch (error) {
      if (!(error instanceof LogValueError)) throw error
      // What came before it is appended, since it has an append of its own.
      this.change({ refused: error, length: MAX_APPEND_LENGTH, stream })
      return
    }
    this.change({ entry, length: entry.json.length, stream, position, isLast })
  }

  /** Appends a change soon. */
  change(change: PendingChange): void {
    if (this.#failed) return
    this.#pending.push(change)
    this.#pendingLength += change.length
    if (this.#isBehind(1)) this.gate.close()
    if (this.#isFlushing) return
    this.#isFlushing = true
    void this.#flush()
  }

  /**
   * Resolves when everything that was added is appended, or the recorder has failed.
   *
   * @param stream Only what this stream has added.
   */
  async flushed(stream?: RecordedStream): Promise<void> {
    while (this.#pending.some((entry) => stream === undefined || entry.stream === stream)) {
      await this.#step.promise
    }
  }

  /** Appends what a stream has added, and releases it. */
  release(stream: OpenStream): Promise<void> {
    this.#streams.delete(stream)
    const releasing = this.flushed(stream)
      .then(() => this.#release(stream.fence))
      .then(stream.endTurn)
    this.#change(stream.name, releasing)
    return releasing
  }

  /** Appends what was added, and releases every stream, also those that are being opened. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const stream of this.#streams) void stream.close()
    this.#ending.abort(new LogError('the recorder is closed'))
    await Promise.all(this.#changing.values())
    this.#leaveRetention()
    this.#closed.resolve()
  }

  async #open(
    name: string,
    earlier: Promise<void> | undefined,
    { wait, signal, onFenced }: OpenOptions,
  ): Promise<RecordedStream> {
    const { ending } = this
    const until = signal === undefined ? ending : AbortSignal.any([ending, signal])
    until.throwIfAborted()
    await earlier
    until.throwIfAborted()
    const waiting = wait === undefined ? undefined : AbortSignal.any([until, wait])
    // A second claim of the same open log would fence the first.
    const endTurn =
      waiting === undefined ? this.#turns.takeIfFree(name) : await this.#turns.take(name, waiting)
    if (endTurn === undefined) {
      throw new LogInUseError('the log', streamName(name), 'another recording of the same open log')
    }
    try {
      return await this.#claim(name, endTurn, until, { wait: waiting, signal, onFenced })
    } catch (error) {
      endTurn()
      throw error
    }
  }

  async #claim(
    name: string,
    endTurn: () => void,
    until: AbortSignal,
    { wait, signal, onFenced }: OpenOptions,
  ): Promise<RecordedStream> {
    const fence = await this.#store.claim(streamName(name), wait === undefined ? {} : { wait })
    try {
      until.throwIfAborted()
      const [position = null] = await this.#store.streamPositions([fence.name])
      until.throwIfAborted()
      // A log may be too large from the beginning.
      await this.#retention?.appended()
      until.throwIfAborted()
      const stream = new OpenStream(this, { name, fence, saved: position, endTurn, onFenced })
      this.#streams.add(stream)
      signal?.addEventListener('abort', () => void stream.close(), { once: true })
      return stream
    } catch (error) {
      await this.#release(fence)
      throw error
    }
  }

  /** Keeps what happens to a name until it is done. */
  #change(name: string, change: Promise<void>): void {
    this.#changing.set(name, change)
    void change.then(() => {
      if (this.#changing.get(name) === change) this.#changing.delete(name)
    })
  }

  async #release(fence: Fence): Promise<void> {
    // The store gives it up when it is closed.
    await this.#store.release(fence).catch(() => {})
  }

  /** Whether this share of what may be pending is exceeded. */
  #isBehind(share: number): boolean {
    return (
      this.#pending.length >= MAX_PENDING_ENTRIES * share || this.#pendingLength >= MAX_PENDING_LENGTH * share
    )
  }

  /** Opens the gate once half of what is pending is appended. It stays closed while a reader keeps the log too large. */
  #setGate(): void {
    const isPaused = (this.#retention?.pausedBy ?? null) !== null
    if (isPaused && !this.#failed) this.gate.close()
    else if (!this.#isBehind(0.5)) this.gate.open()
  }

  async #flush(): Promise<void> {
    // The rest of the chunk goes along.
    await Promise.resolve()
    try {
      while (this.#pending.length > 0) {
        await this.#append().catch((error: unknown) => this.#loseFenced(error))
        this.#setGate()
        // Between two appends, so that a log at its limit does not grow.
        await this.#retention?.appended()
        this.#step.resolve()
        this.#step = Promise.withResolvers()
      }
    } catch (error) {
      this.#failed = true
      this.#pending = []
      this.gate.open()
      this.#step.resolve()
      this.#onFailure(error)
    }
    this.#isFlushing = false
  }

  /** Goes on without the stream that another recorder has claimed. Throws the error if that is not expected. */
  async #loseFenced(error: unknown): Promise<void> {
    if (!(error instanceof FencedError)) throw error
    const fenced = Array.from(this.#streams).find(({ fence }) => fence.name === error.claimed)
    const waiting = this.#pending.find(({ stream }) => stream.fence.name === error.claimed)?.stream
    const stream = fenced ?? waiting
    if (stream?.onFenced === undefined) throw error
    this.#drop((change) => change.stream === stream)
    await this.#dropAppended()
    void stream.close()
    stream.onFenced(error)
  }

  /** A store that is far away may have moved other streams of the append that was refused. */
  async #dropAppended(): Promise<void> {
    const batch = new Set(firstBatch(this.#pending))
    const streams = Array.from(new Set(Array.from(batch, ({ stream }) => stream)))
    const positions = await this.#store.streamPositions(streams.map(({ fence }) => fence.name))
    for (const [n, stream] of streams.entries()) {
      const position = positions[n] ?? null
      if (position === stream.saved) continue
      const last = this.#pending.findLastIndex(
        (change) => change.stream === stream && change.position?.text() === position,
      )
      if (last === -1) continue
      const appended = new Set(this.#pending.slice(0, last + 1).filter((change) => change.stream === stream))
      stream.saved = position
      this.#drop((change) => appended.has(change))
    }
  }

  #drop(isDropped: (change: PendingChange) => boolean): void {
    this.#pending = this.#pending.filter((change) => !isDropped(change))
    this.#pendingLength = lengthOf(this.#pending)
  }

  /** Appends the first changes, as many as one append may have. */
  async #append(): Promise<void> {
    const batch = firstBatch(this.#pending)
    const refused = batch.find((change) => change.refused !== undefined)?.refused
    if (refused !== undefined) throw refused
    const saved = new Map<OpenStream, string | null>()
    const appends = streamParts<OpenStream, PendingChange>(batch).map(({ stream, changes }) => {
      const append = stream.appendOf(changes, saved.get(stream) ?? stream.saved)
      saved.set(stream, append.position ?? append.expect)
      return append
    })
    const done = batch.flatMap((change) => change.done ?? [])
    const { clock, ahead } = await this.#observers.around(
      () => this.#store.append(appends, done),
      (observer, proceed) => {
        if (observer.append === undefined) return proceed()
        return observer.append(
          batch.flatMap(({ entry }) => entry ?? []),
          proceed,
        )
      },
    )
    for (const [stream, position] of saved) stream.saved = position
    this.#pending = this.#pending.slice(batch.length)
    this.#pendingLength -= lengthOf(batch)
    // An append of positions alone does not look at the clock.
    if (batch.some(({ entry }) => entry !== undefined)) this.#lookAt(ahead, clock)
  }

  /** Reports what happened to the wall clock, also if another writer of the log, such as a process, has noticed it first. */
  #lookAt(ahead: number, noticed: LogClock | undefined): void {
    const [time, monotonic, before, last] = [
      Date.now() - ahead,
      performance.now(),
      this.#ahead,
      this.#lookedAt,
    ]
    this.#ahead = ahead
    this.#lookedAt = { time, monotonic }
    if (noticed !== undefined) return this.#onClock(noticed)
    if (Math.sign(ahead) === Math.sign(before)) return
    const passed = last === undefined ? 0 : time - last.time - (monotonic - last.monotonic)
    const by = Math.round(ahead === 0 ? passed : ahead)
    if (ahead !== 0) return this.#onClock({ state: ahead > 0 ? 'ahead' : 'behind', by, at: time })
    this.#onClock({ state: passed > TOLERANCE ? 'accepted' : 'returned', by, at: time })
  }
}

/** The name of an upstream stream in the store. */
function streamName(name: string): string {
  return `stream:${name}`
}

/** The first entries, as many as one append may have: at least one. */
function firstBatch(pending: readonly PendingChange[]): readonly PendingChange[] {
  let length = 0
  const end = pending.findIndex((entry, n) => {
    length += entry.length
    return n === MAX_APPEND_ENTRIES || (n > 0 && length > MAX_APPEND_LENGTH)
  })
  // A copy, since entries are added during the append.
  return pending.slice(0, end === -1 ? pending.length : end)
}

function lengthOf(entries: readonly PendingChange[]): number {
  return entries.reduce((sum, { length }) => sum + length, 0)
}

class OpenStream implements RecordedStream {
  readonly name: string
  readonly fence: Fence
  /** The position in the log; null at the stream's beginning. */
  saved: string | null
  /** Called once it is released. */
  readonly endTurn: () => void
  readonly onFenced: OpenOptions['onFenced']
  readonly #recorder: Recorder
  #closing: Promise<void> | undefined

  constructor(
    recorder: Recorder,
    {
      name,
      fence,
      saved,
      endTurn,
      onFenced,
    }: Pick<OpenStream, 'name' | 'fence' | 'saved' | 'endTurn' | 'onFenced'>,
  ) {
    this.#recorder = recorder
    this.name = name
    this.fence = fence
    this.saved = saved
    this.endTurn = endTurn
    this.onFenced = onFenced
  }

  get position(): string | undefined {
    return this.saved ?? undefined
  }

  get claim(): number {
    return this.fence.token
  }

  add(event: ResearchEvent, position?: StreamPosition, backfill = false): void {
    if (this.#closing === undefined) this.#recorder.add(this, event, position, { backfill })
  }

  tick(event: ResearchEvent, position: StreamPosition): void {
    if (this.#closing === undefined) this.#recorder.add(this, event, position, { isLast: true })
  }

  move(position: StreamPosition): void {
    if (this.#closing === undefined) this.#recorder.change({ length: 0, stream: this, position })
  }

  done(delivery: string): void {
    if (this.#closing === undefined) this.#recorder.change({ length: 0, stream: this, done: delivery })
  }

  /** @param expect Where the stream stands before these changes. */
  appendOf(changes: readonly PendingChange[], expect: string | null): StreamAppend {
    const position = changes.findLast((change) => change.position !== undefined)?.position?.text()
    return {
      fence: this.fence,
      expect,
      entries: changes.flatMap(({ entry }) => entry ?? []),
      ...(position !== undefined && { position }),
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#recorder.release(this)
    return this.#closing
  }
}
