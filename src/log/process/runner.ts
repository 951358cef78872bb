import { firstValueFrom, fromEvent, race, timer as after } from 'rxjs'
import type { ResearchEvent, ResearchEventType } from '../../protocol/event.ts'
import { isTimeEventType } from '../../protocol/event-types.ts'
import type { Observers } from '../../protocol/observers.ts'
import { NO_TIME } from '../../streams/clocks.ts'
import type { Clocks } from '../../streams/clocks.ts'
import { entryOccasion, EXPIRY, hashOf, timerOccasion } from '../../streams/effects.ts'
import type { Occasion } from '../../streams/effects.ts'
import { ProcessCore } from '../../streams/process-core.ts'
import { ProcessError } from '../../streams/process-error.ts'
import { RefusedEffect } from '../../streams/refused-effect.ts'
import { asJson } from '../../streams/representation.ts'
import { MAX_EFFECT_BYTES } from '../../streams/sizes.ts'
import type { Timer } from '../../streams/timers.ts'
import { deadLetterError } from '../consume/dead-letter-error.ts'
import type { EntryOf } from '../consume/consumer-options.ts'
import { LogClosedError, LogError, LogGapError, LogValueError } from '../errors.ts'
import { macrotask } from '../../protocol/macrotask.ts'
import type { LogObserver } from '../event-log/observer.ts'
import { progressEvent } from '../../protocol/log-event.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import { checkWhole, partName } from '../consume/part-name.ts'
import { hasRoom } from '../event-log/retention.ts'
import type { Fence, LogStore, NewEntry, Page, Position } from '../store/contract.ts'
import type { Entry } from '../store/entry.ts'
import { deadLetterBytes, entryBytes } from '../store/commit-size.ts'
import { newEntry } from '../store/new-entry.ts'
import type { ProcessSettings } from './process.ts'
import { Batch } from './batch.ts'
import type { CommittedEffects, ProcessEffects } from './batch.ts'
import { begin } from './begin.ts'
import { movedTime, timeAfter } from './inputs.ts'
import type { ProcessTime } from './inputs.ts'
import type { ProcessOrder } from './process-order.ts'
import { partOfKey } from './process-parts.ts'
import { checkpointOf } from './progress.ts'
import type { Progress, WithinEntry } from './progress.ts'
import { States } from './states.ts'
import { TimerQueue } from './timer-queue.ts'

/** Maximum number of entries that are read at once. */
const PAGE = 500

/** The number of keys after which no more entries are looked at ahead, and of states that are read at once. */
const KEYS_AHEAD = 1_000

/** How long functions may keep the event loop before others run, in ms. The last of them may take up to some 40 ms more, as rules do. */
const MAX_TURN = 10

/** Maximum age of a batch, in ms: slow functions do not delay its commit for longer. */
const MAX_BATCH_TIME = 100

/** How often a process looks whether there is room for its output, in ms. */
const PAUSED_INTERVAL = 1_000

/** The log that a process runs over. */
export interface ProcessedLog {
  readonly store: LogStore
  readonly order: ProcessOrder
  readonly observers: Observers<LogObserver>
}

/** An entry, with its keys or the error of `key`. An entry that is not wanted has no keys. */
interface KeyedEntry<Type extends ResearchEventType> {
  readonly entry: EntryOf<Type>
  /** Keys in the order of texts; undefined for an entry that the process has appended itself. */
  readonly keys: readonly string[] | undefined
  readonly error?: ProcessError
}

/**
 * Runs a process: reads entries in order, fires timers and calls its functions, and commits what they change together with the
 * cursor.
 *
 * It reads all entries and not only those of its types: each of them moves the time, so that timers fire in the same order
 * however entries are cut into pages.
 */
export class ProcessRunner<State, Type extends ResearchEventType> {
  readonly #store: LogStore
  readonly #order: ProcessOrder
  readonly #name: string
  /** Its name in the store. */
  readonly #reader: string
  /** The part of the keys for which it runs the functions; undefined for all keys. */
  readonly #part: number | undefined
  readonly #settings: ProcessSettings<State, Type>
  readonly #core: ProcessCore<State, EntryOf<Type>, string, NewEntry>
  readonly #stop: AbortSignal
  readonly #observers: Observers<LogObserver>
  readonly #states: States
  readonly #timers: TimerQueue
  #batch = new Batch()
  /** The cursor in the store. */
  #saved: Position = ''
  /** The cursor after the entries of the batch, and the clocks there. */
  #cursor: Position = ''
  #progress: Progress = { version: 0, start: '', clocks: NO_TIME }
  /** Whether the batch has anything that the store does not have. */
  #isChanged = false
  /** How far it is within an entry of several keys; undefined between entries. */
  #within: WithinEntry | undefined
  /** Whether other processes come after this one. */
  #isAwaited = false
  /** The progress that this run has reported last. */
  #reported: { readonly through: number; readonly complete: boolean } = { through: -Infinity, complete: true }
  /** When the turn of the event loop and the batch began, by the monotonic clock. */
  #turnBegan = 0
  #batchBegan = 0

  constructor(
    { store, order, observers }: ProcessedLog,
    name: string,
    settings: ProcessSettings<State, Type>,
    stop: AbortSignal,
    part?: number,
  ) {
    const whole = `process:${name}`
    this.#reader = part === undefined ? whole : partName(whole, part)
    this.#part = part
    this.#observers = observers
    this.#store = store
    this.#order = order
    this.#name = name
    this.#settings = settings
    this.#core = new ProcessCore(
      name,
      settings,
      asJson((event) => {
        const output = entryOf(event)
        return output && { output, bytes: entryBytes(output) }
      }),
    )
    this.#stop = stop
    this.#states = new States(store.processes, this.#reader)
    this.#timers = new TimerQueue(store.processes, this.#reader, settings.lateness)
  }

  /** Resolves when the process was stopped or its log closed, and rejects when it failed. Its name is released then. */
  async run(): Promise<void> {
    const { wait } = this.#settings
    try {
      const fence = await this.#store.claim(this.#reader, {
        ...(wait !== undefined && { wait: AbortSignal.any([wait, this.#stop]) }),
      })
      try {
        if (this.#part === undefined) await checkWhole(this.#store, this.#reader)
        await this.#process(fence)
      } finally {
        // It is released with the log otherwise.
        await this.#store.release(fence).catch(() => {})
      }
    } catch (error) {
      const isEnd = error === this.#stop.reason || error instanceof LogClosedError
      if (!this.#stop.aborted || !isEnd) throw error
    }
  }

  async #process(fence: Fence): Promise<void> {
    const claimed = { store: this.#store, fence, name: this.#name, signal: this.#stop }
    const { after: others } = this.#settings
    await this.#order.set(this.#name, others, this.#stop)
    const { cursor, progress } = await begin(claimed, this.#settings)
    this.#saved = cursor
    this.#cursor = cursor
    this.#progress = { ...progress, ...timeAfter(others, progress) }
    this.#within = progress.within
    let isClean = false
    while (!this.#stop.aborted) {
      // One step for each page, since a generation before a rebuild may have had a million keys.
      isClean ||= !(await this.#store.retention.clean())
      const until = this.#progress.rebuild
      const page = await this.#store.read(this.#cursor, {
        limit: PAGE,
        until,
        isCommon: this.#part !== undefined,
      })
      this.#checkGap(page)
      // Others may come after this one since it has begun.
      if (page.entries.some(({ type }) => type === 'log.tick')) {
        this.#isAwaited = await this.#order.isAwaited(this.#name)
      }
      await this.#runPage(fence, page)
      if (this.#stop.aborted) return
      if (page.isEnd && until !== undefined) {
        this.#progress = { ...this.#progress, rebuild: undefined }
        this.#isChanged = true
        await this.#commit(fence)
      } else if (page.isEnd && page.entries.length === 0 && isClean) {
        await this.#store.wait(this.#cursor, this.#stop)
      }
    }
  }

  /** Entries that were deleted are an entry of their own, unless its type is not wanted. */
  #checkGap({ gap }: Page): void {
    if (gap === undefined) return
    const { rebuild, holdsRetention, types, shape } = this.#settings
    const wanted: readonly string[] | undefined = types
    // A definition has no function for it.
    if (shape === undefined && wanted?.includes('log.gap') === false)
      throw new LogGapError(`process:${this.#name}`, gap)
    const isStrict = holdsRetention && rebuild !== 'available'
    if (this.#progress.rebuild === undefined || !isStrict) return
    throw new LogError(
      `the process ${JSON.stringify(this.#name)} cannot be built again: the log deletes its entries meanwhile. ` +
        'With `rebuild: "available"`, it is built from those that are left',
    )
  }

  /** Processes a page. What was processed before a failure is committed. */
  async #runPage(fence: Fence, { entries, position }: Page): Promise<void> {
    this.#turnBegan = performance.now()
    this.#batchBegan = this.#turnBegan
    try {
      await this.#runEntries(fence, entries)
    } catch (error) {
      if (error instanceof ProcessError) await this.#commit(fence)
      throw error
    }
    if (!this.#stop.aborted) this.#moveTo(position)
    await this.#commit(fence)
  }

  async #runEntries(fence: Fence, entries: readonly Entry[]): Promise<void> {
    const others = entries.filter((entry) => !this.#isOwn(entry))
    const { clocks: latest } = others.reduce<ProcessTime>(
      (time, entry) => movedTime(this.#settings.after, time, entry),
      this.#progress,
    )
    const last = this.#core.due(latest)
    for (let at = 0; at < entries.length;) {
      const some = this.#keyed(entries, at)
      at += some.length
      // An entry of more keys is alone or the last one: the others of its keys are read when they are due.
      await this.#states.load(some.flatMap(({ keys = [] }) => keys).slice(0, 2 * KEYS_AHEAD))
      if (this.#isTurnOver) await this.#endTurn(fence)
      for (const keyed of some) {
        if (this.#stop.aborted) return
        await this.#runEntry(fence, keyed, last)
      }
    }
  }

  /** The next entries with their keys, of about so many keys that their states are read at once. */
  #keyed(entries: readonly Entry[], from: number): readonly KeyedEntry<Type>[] {
    const keyed: KeyedEntry<Type>[] = []
    for (let at = from, count = 0; count < KEYS_AHEAD; at++) {
      const entry = entries[at]
      if (entry === undefined) break
      const next = this.#keysOf(entry as EntryOf<Type>)
      keyed.push(next)
      count += next.keys?.length ?? 0
      if (this.#isTurnOver) break
    }
    return keyed
  }

  async #runEntry(fence: Fence, { entry, keys, error }: KeyedEntry<Type>, last: Clocks): Promise<void> {
    // A process does not receive what it has appended.
    if (keys === undefined) return this.#moveTo(entry.position)
    const time = movedTime(this.#settings.after, this.#progress, entry)
    const within = this.#within
    const { position } = entry
    const isGap = entry.type === 'log.gap'
    const isBegun = within?.position === position && within.isGap === isGap
    // Timers that an earlier key has started do not fire before the other keys, just as in a process that was not stopped here.
    const due = this.#core.due(time.clocks)
    if (!isBegun) await this.#fireTimers(fence, entry, due, last)
    if (this.#stop.aborted) return
    if (error !== undefined) await this.#fail(fence, error, entry)
    const occasion = entryOccasion(this.#name, entry, due)
    const rest = isBegun ? keys.filter((key) => key > within.key) : keys
    for (const [index, key] of rest.entries()) {
      // Not after the call: the commit would then have the effects of the call with the cursor before the entry.
      if (this.#isTurnOver) await this.#endTurn(fence)
      if (this.#stop.aborted) return
      if (index > 0 && index % KEYS_AHEAD === 0) {
        await this.#states.load(rest.slice(index, index + KEYS_AHEAD))
      }
      await this.#runEvent(fence, entry, key, occasion)
      if (keys.length > 1) this.#within = { position, key, isGap }
    }
    this.#moveTo(position, time)
    if (this.#isAwaited) await this.#report(fence, entry, due)
  }

  /** Appends how far the process is after an entry that moves time, for those that come after it. They read it after the output so far. */
  async #report(fence: Fence, entry: Entry, due: Clocks): Promise<void> {
    if (!isTimeEventType(entry.type)) return
    const { event: through, complete } = due
    const isNews = through > this.#reported.through || complete !== this.#reported.complete
    if (!Number.isFinite(through) || !isNews) return
    this.#reported = { through, complete }
    const { cause } = entryOccasion(this.#name, entry, due)
    const key = hashOf([this.#reader, entry.source, entry.id])
    const event = progressEvent({ process: this.#name, part: this.#part, through, complete }, key, {
      time: entry.time,
      received: rfc3339(entry.recorded),
      cause,
    })
    const output = newEntry(event)
    const effects = { bytes: entryBytes(output), outputs: [output], timers: [], state: undefined }
    await this.#apply(fence, this.#reader, effects)
  }

  #isOwn({ cause }: Entry): boolean {
    return cause?.process === this.#name
  }

  /**
   * Fires what the entry makes due, before the entry itself, which must not undo it: the end of a silence comes after the timer of that
   * silence. A commit in between leaves the cursor before the entry.
   */
  async #fireTimers(fence: Fence, entry: Entry, until: Clocks, last: Clocks): Promise<void> {
    this.#timers.release(until)
    while (!this.#stop.aborted) {
      while (!this.#timers.isReadUpTo(until)) {
        // As far as the page goes, so that the store is asked once for each page.
        const read = await this.#timers.read(last, this.#batch.timers)
        await this.#states.load(read.map(({ key }) => key))
      }
      const timer = this.#timers.next(until)
      if (timer === undefined) {
        // Each timer that was read may wait for a source that is behind.
        if (this.#timers.isReadUpTo(until)) return
        continue
      }
      await this.#runTimer(fence, entry, timer, until)
      if (this.#isTurnOver) await this.#endTurn(fence)
    }
  }

  async #runTimer(fence: Fence, entry: Entry, timer: Timer, until: Clocks): Promise<void> {
    const { key, name } = timer
    const occasion = timerOccasion(this.#name, timer, until)
    const state = await this.#stateOf(key)
    const run = () => this.#core.timer(occasion, timer, state, entry)
    // The end of a state is no function of the user.
    const effects = name === EXPIRY ? effectsOf(run) : this.#observed(entry, run)
    if (effects instanceof ProcessError) {
      await this.#fail(fence, effects, entry)
      await this.#apply(fence, key, this.#core.ended(occasion, timer))
    } else await this.#apply(fence, key, effects)
  }

  async #runEvent(fence: Fence, entry: EntryOf<Type>, key: string, occasion: Occasion): Promise<void> {
    const state = await this.#stateOf(key)
    const running: Timer[] = []
    for (const range of this.#core.namesRead(entry, key)) {
      running.push(...(await this.#timers.named(key, range, this.#batch.timersOf(key))))
    }
    const effects = this.#observed(entry, () => this.#core.event(occasion, entry, key, state, running))
    if (effects instanceof ProcessError) await this.#fail(fence, effects, entry)
    else await this.#apply(fence, key, effects)
  }

  /** Calls a function within the observers. Returns what it changes, or why its changes are not kept. */
  #observed(entry: Entry, run: () => ProcessEffects<State>): ProcessEffects<State> | ProcessError {
    // Without observers, a call costs one check.
    if (this.#observers.isEmpty) return effectsOf(run)
    return effectsOf(() =>
      this.#observers.around(run, (observer, inner) =>
        observer.handle === undefined
          ? inner()
          : observer.handle(this.#name, entry, () => void inner(), 'process'),
      ),
    )
  }

  /** Ends the process, or stores a dead letter. */
  async #fail(fence: Fence, error: ProcessError, entry: Entry): Promise<void> {
    if (this.#settings.onError === 'stop') throw error
    const cause: unknown = error.cause
    const isTheirs = cause instanceof Error && !(cause instanceof RefusedEffect)
    const { name } = deadLetterError(isTheirs ? cause : error)
    const { message } = deadLetterError(error)
    const bare = { position: entry.position, error: { name, message }, attempts: 1 }
    const whole = { ...bare, entry }
    // The log has no entry for a gap, and may delete one that a process has read which does not hold retention.
    const mayBeGone = entry.type === 'log.gap' || !this.#settings.holdsRetention
    const deadLetter = mayBeGone && deadLetterBytes(whole) <= MAX_EFFECT_BYTES ? whole : bare
    if (!this.#batch.hasRoomForDeadLetter(deadLetter)) await this.#commit(fence)
    this.#batch.addDeadLetter(deadLetter)
    this.#isChanged = true
  }

  /** Adds effects to the commit, or to the next one if there is no room. */
  async #apply(fence: Fence, key: string, effects: CommittedEffects): Promise<void> {
    if (!this.#batch.hasRoomFor(effects)) {
      await this.#commit(fence)
      // Timers may keep it busy for long.
      await macrotask()
    }
    const { state } = effects
    // A state that stays the same is no change.
    if (state !== undefined && state === (await this.#stateOf(key))) effects.state = undefined
    else if (state !== undefined) this.#states.set(key, state)
    for (const change of effects.timers) this.#timers.set(change)
    this.#batch.add(key, effects, this.#progress.rebuild !== undefined)
    this.#isChanged = true
  }

  async #commit(fence: Fence): Promise<void> {
    if (!this.#isChanged) return
    const { state, timers, entries, deadLetters } = this.#batch
    const { lateness, holdsRetention } = this.#settings
    if (entries.length > 0) await this.#room(fence)
    await this.#store.commit(fence, {
      expect: this.#saved,
      cursor: this.#cursor,
      acknowledged: [],
      process: {
        checkpoint: checkpointOf({ ...this.#progress, lateness, within: this.#within }),
        holdsRetention,
        state,
        timers,
      },
      entries,
      deadLetters,
    })
    this.#saved = this.#cursor
    this.#batch = new Batch()
    this.#batchBegan = performance.now()
    this.#isChanged = false
    this.#states.trim()
  }

  /** Waits until the log has room for output. Rejects when the process is stopped. */
  async #room(fence: Fence): Promise<void> {
    const { retention, processes } = this.#store
    if (await hasRoom(retention, fence.name)) return
    await processes.pause(fence)
    do {
      this.#stop.throwIfAborted()
      await firstValueFrom(race(after(PAUSED_INTERVAL), fromEvent(this.#stop, 'abort')))
    } while (!(await hasRoom(retention, fence.name)))
  }

  #moveTo(position: Position, { clocks, inputs }: ProcessTime = this.#progress): void {
    if (position !== this.#cursor) this.#isChanged = true
    this.#cursor = position
    this.#progress = { ...this.#progress, clocks, inputs }
    this.#within = undefined
  }

  get #isTurnOver(): boolean {
    return performance.now() - this.#turnBegan > MAX_TURN
  }

  /** Lets others run, and commits what slow functions have changed. */
  async #endTurn(fence: Fence): Promise<void> {
    if (performance.now() - this.#batchBegan > MAX_BATCH_TIME) await this.#commit(fence)
    await macrotask()
    this.#turnBegan = performance.now()
  }

  #keysOf(entry: EntryOf<Type>): KeyedEntry<Type> {
    if (this.#isOwn(entry)) return { entry, keys: undefined }
    try {
      const keys = this.#core.keysOf(entry)
      return {
        entry,
        keys: this.#part === undefined ? keys : keys.filter((key) => partOfKey(key) === this.#part),
      }
    } catch (error) {
      if (!(error instanceof ProcessError)) throw error
      // Only part 0 stores the dead letter, or each part would. With `stop`, each part fails: once `key` is mended, each
      // of them reads the entry again and finds its keys.
      const isOther = this.#part !== undefined && this.#part > 0
      if (isOther && this.#settings.onError === 'dead-letter') return { entry, keys: [] }
      return { entry, keys: [], error }
    }
  }

  async #stateOf(key: string): Promise<string | null> {
    const cached = this.#states.peek(key)
    if (cached !== undefined) return cached
    await this.#states.load([key])
    return this.#states.peek(key) ?? null
  }
}

function effectsOf<State>(run: () => ProcessEffects<State>): ProcessEffects<State> | ProcessError {
  try {
    return run()
  } catch (error) {
    if (error instanceof ProcessError) return error
    throw error
  }
}

/** The entry of an output; undefined if its event is not JSON. */
function entryOf(event: ResearchEvent): NewEntry | undefined {
  try {
    return newEntry(event)
  } catch (error) {
    if (error instanceof LogValueError) return undefined
    throw error
  }
}
