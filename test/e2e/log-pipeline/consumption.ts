import type { Entry, Position } from 'rivulet/log'
import type { Commit, LogStore, ReaderState } from '../../../src/log/store/contract.ts'
import { keyOf } from '../pipeline/expected-events.ts'
import { OF_LOG } from './recorded-log.ts'
import type { RecordedLog } from './recorded-log.ts'
import type { Trace } from './trace.ts'

/** The settings of one consumer. */
export interface ConsumerScript {
  /** When it is created, in ms: without retention, it gets what is in the log then too. */
  readonly from: number
  readonly concurrency: number
  readonly highWaterMark: number
  readonly retries: number
  /** Whether entries of one source are handled one after the other. */
  readonly keyed: boolean
  readonly maxUnacknowledged: number
  readonly revisions: 'all' | 'first'
  /** What drops entries. */
  readonly drops: 'nothing' | 'types' | 'where' | 'ofType'
  /** The operator between the consumer and `deliver`. */
  readonly between: 'nothing' | 'delay' | 'batches' | 'shuffle'
  /** Whether entries that it cannot handle become dead letters. Otherwise it fails, and begins again. */
  readonly hasDeadLetters: boolean
  /** Whether it is `consume` where nothing stands between. */
  readonly isJob: boolean
}

/** The types that a consumer drops. */
const DROPPED: readonly string[] = [
  'task_group.status',
  'monitor.completion',
  'source.live',
  'source.lost',
  'log.tick',
] satisfies Entry['type'][]

/** A dead letter in the log. */
interface Letter {
  readonly attempts: number
  /** Whether it was asked to be handed out again. */
  isRedelivered: boolean
  /** The subscription that has handed it out again. */
  reading: Reading | undefined
}

/** What was saved at one time. */
interface SavedState {
  readonly state: ReaderState
  /** The number of entries that were handled before. */
  readonly ended: number
  /** Whether an entry was emitted before. */
  readonly hasBegun: boolean
}

/** How long an entry may stay unsaved after it was handled while nothing is being saved, in ms. */
const MAX_UNSAVED = 100

/** Whether the consumer wants the entry. */
export function isWanted({ drops, revisions }: ConsumerScript, entry: Entry): boolean {
  if (entry.type === 'log.gap') return true
  if (revisions === 'first' && entry.revision > 1) return false
  if (drops === 'where') return !/[37]$/.test(entry.id)
  return drops === 'nothing' || !DROPPED.includes(entry.type)
}

/** What a consumer has handled and saved, over all of its processes. */
export class Consumption {
  readonly name: string
  readonly script: ConsumerScript
  /** The virtual time, in ms. */
  readonly now: () => number
  readonly #log: RecordedLog
  readonly #trace: Trace
  readonly #handled = new Set<Position>()
  /** When each entry was handled, or its dead letter saved, for the first time: the number of those before. */
  readonly #ended = new Map<Position, number>()
  readonly #letters = new Map<Position, Letter>()
  /** The number of requests under way that all dead letters be handed out again. */
  #redeliveries = 0
  /** What was saved and not checked, with the number of entries that were handled before. */
  #commits: SavedState[] = []
  /** Whether it has got an entry of the log. */
  #hasBegun = false
  /** The number of entries that were deleted before it was created. */
  #start = 0
  #saved: ReaderState | undefined
  /** The number of entries up to the saved cursor that was checked. */
  #checked = 0
  #readings: Reading[] = []

  constructor(name: string, script: ConsumerScript, log: RecordedLog, trace: Trace, now: () => number) {
    this.now = now
    this.name = name
    this.script = script
    this.#log = log
    this.#trace = trace
  }

  /** A process subscribes. */
  subscribe(isCommitting: () => boolean): Reading {
    const reading = new Reading(this, this.#log, this.#trace, this.#saved, isCommitting)
    this.#readings.push(reading)
    return reading
  }

  /** A commit had its effect. */
  committed({ cursor, acknowledged, deadLetters = [], redelivered = [] }: Commit): void {
    for (const { position, attempts } of deadLetters) {
      const before = this.#letters.get(position)?.attempts ?? 0
      if (attempts !== before + this.script.retries + 1)
        this.#trace.report(`${this.name} has a dead letter after ${attempts} attempts, and ${before} before`)
      const isRedelivered = this.#redeliveries > 0
      this.#letters.set(position, { attempts, isRedelivered, reading: undefined })
      this.#passed(position)
    }
    for (const position of redelivered) {
      if (!this.#handled.has(position))
        this.#trace.report(`${this.name} removes a letter that is not handled`)
      this.#letters.delete(position)
    }
    this.#saved = { cursor, acknowledged }
    this.#commits.push({ state: this.#saved, ended: this.#ended.size, hasBegun: this.#hasBegun })
    for (const reading of this.#readings) reading.saved(this.#saved)
  }

  /** A commit was rejected. */
  failed(): void {
    for (const reading of this.#readings) reading.failed()
  }

  /** An entry was handled. */
  ended({ position }: Entry): void {
    this.#handled.add(position)
    this.#passed(position)
  }

  /** It gets an entry. Only a consumer that was killed while it was created may get a gap. */
  begins({ type }: Entry): void {
    if (type !== 'log.gap') this.#hasBegun = true
    else if (this.#hasBegun) this.#trace.report(`${this.name} gets a gap`)
  }

  /** The dead letter of this entry in the log. */
  letterOf({ position }: Entry): Letter | undefined {
    return this.#letters.get(position)
  }

  /** All dead letters are handed out again. */
  async redeliver(store: LogStore): Promise<void> {
    this.#redeliveries += 1
    for (const letter of this.#letters.values()) letter.isRedelivered = true
    await store.deadLetters.redeliver(`consumer:${this.name}`, 'all')
    this.#redeliveries -= 1
  }

  /** Whether it was handled before. */
  hasEnded(entry: Entry): boolean {
    return this.#handled.has(entry.position)
  }

  /** Checks what happened since the last check. All entries that the consumer has read are in the log that was read. */
  check(): void {
    for (const commit of this.#commits) this.#checkCommit(commit)
    this.#commits = []
    if (
      this.#hasBegun &&
      this.#saved !== undefined &&
      this.#log.deleted > Math.max(0, this.#indexOf(this.#saved.cursor))
    )
      this.#trace.report(`the log deleted entries that ${this.name} has not handled`)
    for (const reading of this.#readings) reading.check()
    this.#readings = this.#readings.filter((reading) => !reading.isOver)
  }

  /** What is not handled, or not saved. */
  missing(): string[] {
    // What the log itself adds at the end may come after the consumer has stopped.
    const length = this.#log.entries.findLastIndex(({ type }) => !OF_LOG.has(type)) + 1
    const entries = this.#log.entries.slice(this.#start, length)
    const missing = entries
      .filter((entry) => isWanted(this.script, entry) && !this.hasEnded(entry))
      .map((entry) => `${this.name} did not handle ${keyOf(entry)}`)
    const cursor = this.#indexOf(this.#saved?.cursor)
    if (cursor < length) missing.push(`${this.name} is at ${cursor} of ${length}`)
    const letters = [...this.#letters.keys()].filter((position) => this.#indexOf(position) <= length)
    if (letters.length > 0) missing.push(`${this.name} has ${letters.length} dead letters`)
    return missing
  }

  #passed(position: Position): void {
    if (!this.#ended.has(position)) this.#ended.set(position, this.#ended.size)
  }

  /** Saved is only what was handled or dropped, or is a dead letter. */
  #checkCommit({ state, ended, hasBegun }: SavedState): void {
    const cursor = this.#indexOf(state.cursor)
    if (!hasBegun) this.#start = this.#checked = Math.max(this.#checked, Math.min(cursor, this.#log.deleted))
    if (cursor < this.#checked) this.#trace.report(`${this.name} moved back to ${cursor}`)
    const { entries } = this.#log
    const saved = entries.slice(this.#checked, cursor)
    this.#checked = cursor
    for (const position of state.acknowledged) {
      const entry = entries[this.#indexOf(position) - 1]
      if (entry !== undefined) saved.push(entry)
    }
    for (const entry of saved) {
      if (isWanted(this.script, entry) && (this.#ended.get(entry.position) ?? Infinity) >= ended)
        this.#trace.report(`${this.name} saved ${keyOf(entry)} before it was handled`)
    }
  }

  /** The number of entries up to a position. */
  #indexOf(position: Position | undefined): number {
    // The start of the log is the position of no entry.
    return position === undefined ? -1 : (this.#log.indexOf(position) ?? 0)
  }
}

/** One subscription of a consumer. */
export class Reading {
  /** Whether it has ended, or its process. */
  isOver = false
  readonly #consumption: Consumption
  readonly #log: RecordedLog
  readonly #trace: Trace
  /** What was saved before it began. */
  readonly #before: ReaderState | undefined
  readonly #isCommitting: () => boolean
  #saved: ReaderState | undefined
  #isStopped = false
  #isFailed = false
  readonly #begun = new Set<Position>()
  /** Those whose order was not checked. */
  #unchecked: Entry[] = []
  /** Those that the handler has, with the number of its failures. */
  readonly #inFlight = new Map<readonly Entry[], number>()
  /** Handled or given up, and not saved. */
  readonly #unsaved = new Map<Position, Entry>()
  /** The time since when each of them could have been saved, but was not. */
  readonly #idleSince = new Map<Position, number>()
  /** The number of the last entry that began, by key. */
  readonly #reached = new Map<string, number>()

  constructor(
    consumption: Consumption,
    log: RecordedLog,
    trace: Trace,
    before: ReaderState | undefined,
    isCommitting: () => boolean,
  ) {
    this.#consumption = consumption
    this.#log = log
    this.#trace = trace
    this.#before = before
    this.#isCommitting = isCommitting
  }

  /** The handler gets these entries at once, for the first time or again. */
  began(entries: readonly Entry[]): void {
    if (this.#inFlight.has(entries)) return
    const { name, script } = this.#consumption
    this.#inFlight.set(entries, 0)
    if (this.#inFlight.size > script.concurrency)
      this.#trace.report(`${name} handles ${this.#inFlight.size} at once`)
    for (const entry of entries) {
      const key = `${keyOf(entry)} (${entry.revision})`
      const isRepeated = this.#consumption.hasEnded(entry)
      this.#consumption.begins(entry)
      this.#trace.log(`${name} begins ${key}${isRepeated ? ' again' : ''}`)
      if (!isWanted(script, entry)) this.#trace.report(`${name} does not want ${key}`)
      const letter = this.#consumption.letterOf(entry)
      // A suspended process may read an entry for the first time whose letter is that of its successor.
      const isAgain = this.#begun.has(entry.position) || this.#isSaved(entry.position, this.#before)
      if (letter !== undefined && (isAgain || letter.isRedelivered)) {
        if (!letter.isRedelivered || (isAgain && letter.reading === this))
          this.#trace.report(`${name} gets the dead letter ${key} without being asked`)
        letter.reading = this
        continue
      }
      if (this.#begun.has(entry.position)) this.#trace.report(`${name} gets ${key} twice`)
      if (this.#isSaved(entry.position, this.#before))
        this.#trace.report(`${name} gets ${key}, although it was saved`)
      this.#begun.add(entry.position)
      this.#unchecked.push(entry)
    }
  }

  /** The handler succeeded. */
  ended(entries: readonly Entry[]): void {
    this.#inFlight.delete(entries)
    for (const entry of entries) {
      this.#consumption.ended(entry)
      this.#unsaved.set(entry.position, entry)
    }
  }

  /** The handler failed. */
  refused(entries: readonly Entry[]): void {
    const failures = (this.#inFlight.get(entries) ?? 0) + 1
    this.#inFlight.set(entries, failures)
    const { hasDeadLetters, retries } = this.#consumption.script
    if (!hasDeadLetters || failures <= retries) return
    this.#inFlight.delete(entries)
    for (const entry of entries) this.#unsaved.set(entry.position, entry)
  }

  /** What was saved by this or another subscription. */
  saved(state: ReaderState): void {
    this.#saved = state
  }

  /** It could not save. Entries that `deliver` has are still handled, and come again. */
  failed(): void {
    this.#isFailed = true
  }

  /** The subscription was stopped and has saved everything. */
  stopped(): void {
    this.isOver = this.#isStopped = true
  }

  check(): void {
    this.#checkOrder()
    for (const position of this.#unsaved.keys()) {
      if (this.#isSaved(position, this.#saved)) this.#unsaved.delete(position)
    }
    if (this.#isFailed || (this.isOver && !this.#isStopped)) return
    if (this.#isCommitting()) this.#idleSince.clear()
    const { name, now } = this.#consumption
    for (const [position, entry] of this.#unsaved) {
      if (this.#isStopped) this.#trace.report(`${name} stopped without saving ${keyOf(entry)}`)
      if (this.#isCommitting()) continue
      const since = this.#idleSince.get(position) ?? now()
      if (now() - since > MAX_UNSAVED) this.#trace.report(`${name} does not save ${keyOf(entry)}`)
      this.#idleSince.set(position, since)
    }
  }

  /** Entries begin in the order of the log. */
  #checkOrder(): void {
    const { name, script } = this.#consumption
    const unread = this.#unchecked.findIndex(({ position }) => this.#log.indexOf(position) === undefined)
    const checked = this.#unchecked.splice(0, unread === -1 ? Infinity : unread)
    // The key of a batch is that of its first entry.
    if (script.between === 'shuffle' || (script.between === 'batches' && script.keyed)) return
    for (const entry of checked) {
      const key = script.keyed ? entry.source : ''
      const index = this.#numberOf(entry.position)
      if (index <= (this.#reached.get(key) ?? 0)) this.#trace.report(`${name} out of order: ${keyOf(entry)}`)
      this.#reached.set(key, index)
    }
  }

  #isSaved(position: Position, state: ReaderState | undefined): boolean {
    if (state === undefined) return false
    const { cursor, acknowledged } = state
    return this.#numberOf(position) <= (this.#log.indexOf(cursor) ?? 0) || acknowledged.includes(position)
  }

  /** An entry that the audit has not read is after all others. */
  #numberOf(position: Position): number {
    return this.#log.indexOf(position) ?? Infinity
  }
}
