import { AckWindow } from './ack-window.ts'
import type { Commit, Fence, LogStore, Position, ReaderState, StartAt } from '../store/contract.ts'
import type { NewDeadLetter } from '../store/dead-letter-store.ts'
import type { EffectCursor } from './effects.ts'
import type { EffectState } from '../store/effect-store.ts'
import { wholeName } from './part-name.ts'
import { EffectError, LogPositionError } from '../errors.ts'
import type { PositionProblem } from '../errors.ts'

/** Interval between two copies of a cursor that is stored elsewhere, in ms. */
const COPY_INTERVAL = 1_000

/** Interval between two saves, in ms. The next save has all acknowledgements that came meanwhile. */
const SAVE_INTERVAL = 10

/** Interval between two saves of a partition without acknowledgements, in ms: the cursors of many idle partitions move with the log. */
const IDLE_INTERVAL = 5_000

/** Maximum number of entries that are read at once, to look at their positions. */
const PAGE = 500

/** Dead letters in one commit: texts of errors are up to some kB. */
const DEAD_LETTERS = 100

/** The error of a dead letter that the log no longer knows. */
const LOST = {
  name: 'Error',
  message:
    'the error of this dead letter is no longer known, since an earlier state of the log was put back, or its consumer was removed from the log',
} as const

/** The consumer of a {@link ConsumerCursor}, and its callbacks. */
interface CursorPlan {
  /** The partition, if it is not the cursor of a whole consumer. */
  readonly partition: number | undefined
  /** Number of the consumer's cursors that are saved here. The interval of each is as many times longer. Default 1. */
  readonly cursors?: () => number
  /** Called once the name is claimed. If it resolves with false or rejects, nothing begins. */
  readonly isWanted?: (() => Promise<boolean>) | undefined
  /** Called after each save, which may have moved the cursor past dead letters. */
  readonly onSaved: () => void
  /** Called when the state could not be saved. Nothing more is saved then. */
  readonly onFailure: (error: unknown) => void
}

/**
 * The state of one subscription to a consumer: loads it and saves it. It is stored in the log, or beside the effects of the consumer
 * with a copy in the log.
 */
export class ConsumerCursor {
  readonly #store: LogStore
  readonly #name: string
  readonly #effects: EffectCursor | undefined
  readonly #plan: CursorPlan
  #window: AckWindow | undefined
  #fence: Fence | undefined
  /** The cursor that is saved; undefined while nothing can be saved. */
  #saved: Position | undefined
  #saving: Promise<void> = Promise.resolve()
  #nextSave: Promise<void> | undefined
  #savedAt = -Infinity
  /** Whether the next save can wait. */
  #isIdle = false
  #isEnding = false
  /** Ends the pause before a save. */
  #hurry = () => {}
  #failure: { readonly error: unknown } | undefined

  constructor(store: LogStore, name: string, effects: EffectCursor | undefined, plan: CursorPlan) {
    this.#store = store
    this.#name = name
    this.#effects = effects
    this.#plan = plan
  }

  /** The cursor in the log. */
  get saved(): Position | undefined {
    return this.#saved
  }

  /**
   * Claims the name, and reads or creates the state. Resolves with undefined if the signal was aborted meanwhile, or the reader is not wanted.
   *
   * @param startAt Start of a new reader, or its state.
   */
  async begin(
    claim: { readonly wait?: AbortSignal },
    startAt: StartAt | ReaderState,
    signal: AbortSignal,
  ): Promise<AckWindow | undefined> {
    const fence = await this.#store.claim(this.#name, claim)
    this.#fence = fence
    if (signal.aborted || (await this.#plan.isWanted?.()) === false) return undefined
    const window =
      this.#effects === undefined
        ? await this.#beginInLog(fence, startAt)
        : await this.#beginWithEffects(fence, startAt, this.#effects)
    this.#window = window
    if (window.hasMore) this.saveSoon()
    return window
  }

  /**
   * Saves the acknowledgements, after the save that is running.
   *
   * @param isIdle Whether nothing was acknowledged: a partition waits longer then.
   */
  saveSoon(isIdle = false): void {
    const wasIdle = this.#isIdle
    this.#isIdle = this.#plan.partition !== undefined && isIdle && (this.#nextSave === undefined || wasIdle)
    this.#nextSave ??= this.#saveNext()
    if (this.#window?.hasMore === true || (wasIdle && !this.#isIdle)) this.#hurry()
  }

  /** Saves the rest. */
  async flush(): Promise<void> {
    this.#isEnding = true
    if (this.#effects !== undefined) this.saveSoon()
    this.#hurry()
    while (this.#nextSave !== undefined) await this.#nextSave
    await this.#saving
  }

  /** Saves the rest, and releases the name. */
  async end(): Promise<void> {
    await this.flush()
    const fence = this.#fence
    this.#fence = undefined
    // It is released with the log otherwise.
    if (fence !== undefined) await this.#store.release(fence).catch(() => {})
  }

  /** Removes the reader from the log. Its state beside effects stays. */
  async remove(): Promise<void> {
    if (this.#fence !== undefined) await this.#store.retention.remove(this.#name, this.#fence)
  }

  /** Throws why a save failed. */
  checkSaved(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async #beginInLog(fence: Fence, startAt: StartAt | ReaderState): Promise<AckWindow> {
    const state = (await this.#store.reader(this.#name)) ?? (await this.#create(fence, startAt))
    this.#saved = state.cursor
    return new AckWindow(state)
  }

  /** Creates the reader in the log. */
  async #create(fence: Fence, startAt: StartAt | ReaderState): Promise<ReaderState> {
    const store = this.#store
    const isCopy = this.#effects !== undefined
    if (typeof startAt === 'object' && 'cursor' in startAt) {
      await store.commit(fence, { expect: null, ...startAt, isCopy })
      return startAt
    }
    const state = { cursor: await store.positionAt(startAt), acknowledged: [] }
    await store.commit(fence, { expect: null, ...state, isCopy })
    if (startAt === 'end') return state
    // Entries may have been deleted before the reader was there to keep them. From now on it keeps them.
    const cursor = await store.positionAt(startAt)
    if (cursor === state.cursor) return state
    await store.commit(fence, { expect: state.cursor, cursor, acknowledged: [], isCopy })
    return { cursor, acknowledged: [] }
  }

  /** Loads the state beside the effects, which decides: the log may have the state before a crash, or of effects that are gone. */
  async #beginWithEffects(
    fence: Fence,
    startAt: StartAt | ReaderState,
    effects: EffectCursor,
  ): Promise<AckWindow> {
    const inLog = await this.#store.reader(this.#name)
    const moved = await effects.peekMoved(this.#name)
    const isMoved = moved?.state !== undefined && (await this.#refused(moved)) === undefined
    const known = isMoved ? moved : await effects.peek(this.#name)
    if (known === undefined && inLog !== undefined) throw this.#missingCursor(effects)
    // Before the state is taken over: it may belong to a consumer of another log.
    await this.#checkPositions(known, inLog, effects)
    const consumer = {
      stateAfter: (positions: ReadonlySet<Position>) => window.stateAfter(positions),
      isOpen: (position: Position) => window.isOpen(position),
      redelivery: (position: Position) => window.redelivery(position),
    }
    const kept = await effects.take(fence, consumer, isMoved ? 'moved' : 'own')
    await this.#checkPositions(kept, inLog, effects)
    const { applied, deadLetters, redelivered } = kept
    const state = applied.length === 0 ? kept.state : await this.#withApplied(kept.state, applied)
    const copy = inLog ?? (await this.#create(fence, state === undefined ? startAt : 'start'))
    this.#saved = copy.cursor
    // Before the copy moves past their entries: it says which dead letters the log has had.
    const lost = state === undefined ? [] : await this.#lostDeadLetters(state, copy, effects)
    const unsent = new Set(deadLetters.map(({ position }) => position))
    const added = [...deadLetters, ...lost.filter(({ position }) => !unsent.has(position))]
    await this.#settleDeadLetters(fence, copy, { added, redelivered }, effects)
    const window = new AckWindow(state ?? copy)
    // The copy is never ahead of the state.
    if (state === undefined || applied.length > 0 || added.length > 0) await effects.save()
    return window
  }

  /** Acknowledges these positions too. They and the earlier ones are put in the order of the log. */
  async #withApplied(
    state: ReaderState | undefined,
    applied: readonly Position[],
  ): Promise<ReaderState | undefined> {
    if (state === undefined) return undefined
    const { cursor, acknowledged } = state
    const unordered = new Set([...acknowledged, ...applied])
    const ordered: Position[] = []
    let after = cursor
    // Positions that the log no longer has are never read again.
    for (let isEnd = false; !isEnd && unordered.size > 0;) {
      const page = await this.#store.read(after, { limit: PAGE })
      ordered.push(...page.entries.map(({ position }) => position).filter((each) => unordered.delete(each)))
      after = page.position
      isEnd = page.isEnd
    }
    return { cursor, acknowledged: ordered }
  }

  /**
   * The dead letters that the log does not have although it had them: an earlier state of it was put back. It has had those of entries that its
   * copy of the state has as acknowledged; what it lacks of these was removed.
   */
  async #lostDeadLetters(
    state: ReaderState,
    copy: ReaderState,
    effects: EffectCursor,
  ): Promise<readonly NewDeadLetter[]> {
    const until = state.acknowledged.at(-1) ?? state.cursor
    const lost: NewDeadLetter[] = []
    let after = copy.cursor
    for (let isEnd = after === until; !isEnd;) {
      const page = await this.#store.read(after, { limit: PAGE, until, partition: this.#plan.partition })
      const entries = new Map(page.entries.map((entry) => [entry.position, entry]))
      for (const position of copy.acknowledged) entries.delete(position)
      for (const position of await effects.givenUp(this.#name, [...entries.keys()])) {
        const entry = page.gap && entries.get(position)
        lost.push({ position, error: LOST, attempts: 1, ...(entry && { entry }) })
      }
      after = page.position
      ;({ isEnd } = page)
    }
    return lost
  }

  /**
   * Adds dead letters to the log that it does not have, and removes those that were handled before a crash, before it can hand them out
   * again.
   */
  async #settleDeadLetters(
    fence: Fence,
    copy: ReaderState,
    {
      added,
      redelivered,
    }: { readonly added: readonly NewDeadLetter[]; readonly redelivered: readonly Position[] },
    effects: EffectCursor,
  ): Promise<void> {
    const commit = (changes: Pick<Commit, 'deadLetters' | 'redelivered'>) =>
      this.#store.commit(fence, { expect: copy.cursor, ...copy, isCopy: true, ...changes })
    for (let at = 0; at < redelivered.length; at += PAGE) {
      const removed = redelivered.slice(at, at + PAGE)
      await commit({ redelivered: removed })
      effects.sent({ added: [], removed })
    }
    for (let at = 0; at < added.length; at += DEAD_LETTERS) {
      const deadLetters = added.slice(at, at + DEAD_LETTERS)
      await commit({ deadLetters })
      effects.sent({ added: deadLetters.map(({ position }) => position), removed: [] })
    }
  }

  /** Rejects if the log does not have the entries of the effects: it is another log, or an earlier state of it was restored. */
  async #checkPositions(
    kept: EffectState | undefined,
    inLog: ReaderState | undefined,
    effects: EffectCursor,
  ): Promise<void> {
    const refused = kept && (await this.#refused(kept))
    if (refused !== undefined) throw refused.with(this.#howToGoOn(refused.reason, inLog, effects))
  }

  /** Why the log does not have the positions of a state; undefined if it has them. */
  async #refused(kept: EffectState): Promise<LogPositionError | undefined> {
    if (kept.state === undefined) return undefined
    const { cursor, acknowledged } = kept.state
    // Positions before the last acknowledged one are part of its history.
    const last = acknowledged.at(-1) ?? cursor
    const deadLetters = kept.deadLetters.map(({ position }) => position)
    try {
      for (const position of new Set([cursor, last, ...kept.applied, ...deadLetters, ...kept.redelivered])) {
        await this.#store.read(position, { limit: 1 })
      }
      return undefined
    } catch (error) {
      if (error instanceof LogPositionError) return error
      throw error
    }
  }

  #missingCursor(effects: EffectCursor): EffectError {
    return new EffectError(
      effects.place,
      `cannot follow the earlier ones of ${JSON.stringify(this.#name)}: the log knows this consumer, and the database has no ` +
        'cursor of it. Use the database that has its effects, or another name; remove the consumer from the log to begin at ' +
        '`startAt`; or let it go on where the log has it: rivulet log rewind',
    )
  }

  #howToGoOn(reason: PositionProblem, inLog: ReaderState | undefined, effects: EffectCursor): string {
    const [name, place] = [JSON.stringify(this.#consumer), effects.place]
    const whose =
      reason === 'unknown'
        ? `. It is the cursor of ${name} in ${place}, whose effects come from another log, or from this one before a backup of it was ` +
          'restored. Use that log, copy it with its effects (rivulet log migrate --effects), or use another name'
        : `. It is the cursor of ${name} in ${place}, which was not put back with the log`
    if (inLog === undefined) {
      const row = `DELETE FROM rivulet_effect_cursor WHERE reader = '${this.#name.replaceAll("'", "''")}'`
      return `${whose}. The log does not know the consumer. To begin at \`startAt\`: ${row}`
    }
    return (
      `${whose}. To go on where the log has it, at ${inLog.cursor}, and to apply what comes after that again: ` +
      `rivulet log rewind --consumer ${name} --effects ${place} --log LOG`
    )
  }

  /** The consumer, as the user has named it. */
  get #consumer(): string {
    return wholeName(this.#name).slice('consumer:'.length)
  }

  async #saveNext(): Promise<void> {
    const previous = this.#saving
    await previous
    await this.#pause()
    this.#saving = this.#nextSave ?? previous
    this.#nextSave = undefined
    this.#isIdle = false
    const { expect, fence, window } = { expect: this.#saved, fence: this.#fence, window: this.#window }
    if (expect === undefined || fence === undefined || window === undefined) return
    try {
      // Before its copy, which retention relies on.
      await this.#effects?.save()
      const commit = window.take()
      await this.#store.commit(fence, { expect, ...commit, isCopy: this.#effects !== undefined })
      this.#saved = commit.cursor
      this.#plan.onSaved()
      const { deadLetters = [], redelivered = [] } = commit
      const isToForget = this.#effects !== undefined && deadLetters.length + redelivered.length > 0
      // The effects forget these dead letters with the next save, even if this was the last commit.
      if (isToForget)
        this.#effects.sent({ added: deadLetters.map(({ position }) => position), removed: redelivered })
      if (window.hasMore || isToForget) this.saveSoon()
    } catch (error) {
      // Entries that could not be saved are emitted again. The name still has to be released.
      this.#saved = undefined
      this.#failure ??= { error }
      this.#plan.onFailure(error)
    } finally {
      this.#savedAt = performance.now()
    }
  }

  /** Waits, so that many acknowledgements share a save. The first acknowledgement after a pause is saved at once. */
  #pause(): Promise<void> | undefined {
    const interval = this.#isIdle
      ? IDLE_INTERVAL
      : this.#effects === undefined
        ? SAVE_INTERVAL * (this.#plan.cursors?.() ?? 1)
        : COPY_INTERVAL
    const remaining = this.#savedAt + interval - performance.now()
    if (remaining <= 0 || this.#isEnding || this.#window?.hasMore === true) return undefined
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, remaining)
      this.#hurry = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
