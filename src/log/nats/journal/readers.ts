import { ArgumentError } from '../../../protocol/argument-error.ts'
import { LogConflictError } from '../../errors.ts'
import type { Commit, Fence, StoredReader } from '../../store/contract.ts'
import type { NewDeadLetter } from '../../store/dead-letter-store.ts'
import type { NatsClaims } from './claims.ts'
import type { DeadLetterCopies } from './dead-letter-copies.ts'
import type { JournalChanges } from './journal-changes.ts'
import type { JournalCommit, JournalDeadLetter } from './journal-message.ts'
import type { JournalState } from './journal-state.ts'
import type { Journals } from './journals.ts'
import { isStream } from '../server/names.ts'
import type { JournaledEntries } from './journaled-entries.ts'

/** Dependencies of the readers of a log. */
export interface ReaderParts {
  readonly journals: Journals
  readonly claims: NatsClaims
  readonly changes: JournalChanges
  readonly copies: DeadLetterCopies
  readonly entries: JournaledEntries
  readonly clock: () => number
}

/** The changed fields of the head of a removed reader. */
const REMOVED = { reader: null, holdsRetention: true, pausedToken: null }

/** The states of readers. */
export class NatsReaders {
  readonly #parts: ReaderParts

  constructor(parts: ReaderParts) {
    this.#parts = parts
  }

  /** A reader; undefined for an unknown one. */
  async get(name: string): Promise<StoredReader | undefined> {
    const reader = (await this.#parts.journals.head(name))?.reader ?? undefined
    if (reader === undefined) return undefined
    const process = await this.#parts.journals.of(name).read((state) => state.processes.process(name))
    return { ...reader, process }
  }

  /**
   * Moves the reader of the fence's name, in one message with everything else in the commit, and then appends its entries.
   * Rejects with a FencedError, a LogConflictError or a LogPositionError.
   */
  async commit(fence: Fence, commit: Commit): Promise<void> {
    const { journals, claims, changes, copies, entries } = this.#parts
    const { name } = fence
    // Retention would not see it.
    if (isStream(name)) throw new ArgumentError('fence', 'that of a reader, not of an upstream stream', name)
    const { expect, cursor, acknowledged, isCopy, deadLetters = [], redelivered = [], process } = commit
    const journal = journals.of(name)
    const positions = [
      cursor,
      ...acknowledged,
      ...deadLetters.map(({ position }) => position),
      ...redelivered,
    ]
    const checked = entries.checkPositions(positions).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    const stored = new Set<string>()
    let handled: readonly string[] = []
    const sequence = await journal.write(async (state) => {
      claims.checkIn(state, fence)
      if ((state.head.reader?.cursor ?? null) !== expect) throw new LogConflictError(journals.log, name)
      const refused = await checked
      if (refused !== undefined) throw refused.error
      handled = redelivered.filter((position) => state.deadLetters.has(position))
      const journaled = await this.#journaled(state, deadLetters, stored)
      return {
        head: {
          reader: { cursor, acknowledged, ...(isCopy && { isCopy }) },
          deadLetters: state.deadLetters.size + journaled.length,
          ...(process && { holdsRetention: process.holdsRetention ?? true, pausedToken: null }),
        },
        ...this.#content(commit, journaled),
      }
    })
    if (process !== undefined) changes.notify(name)
    if (handled.length > 0) void copies.remove(name, handled, sequence ?? 0).catch(() => {})
    // The next commit waits for it, and tries it again.
    void journal.shorten().catch(() => {})
  }

  /**
   * Removes a reader, but not its dead letters. Rejects with a LogInUseError while an open log has claimed it.
   *
   * @param fence The fence of its owner, if the owner removes it and keeps the claim. Rejects with a FencedError.
   */
  async remove(name: string, fence?: Fence): Promise<void> {
    const { journals, claims, changes } = this.#parts
    if (fence !== undefined) {
      await journals.of(name).write((state) => {
        claims.checkIn(state, fence)
        return { head: REMOVED, isDropped: true }
      })
      return changes.notify(name)
    }
    if ((await journals.head(name)) === undefined) return
    await claims.revoke(name, { head: REMOVED, isDropped: true })
    changes.notify(name)
  }

  /** The contents of a commit beside the head; nothing if the head is enough. */
  #content(
    { redelivered = [], process, entries = [] }: Commit,
    deadLetters: readonly JournalDeadLetter[],
  ): { readonly commit?: JournalCommit } {
    const isEmpty = deadLetters.length + redelivered.length + entries.length === 0 && process === undefined
    if (isEmpty) return {}
    return { commit: { deadLetters, redelivered, now: this.#parts.clock(), process, entries } }
  }

  /** Stores copies of the entries of new dead letters, which are without effect until the commit. */
  async #journaled(
    state: JournalState,
    deadLetters: readonly NewDeadLetter[],
    stored: Set<string>,
  ): Promise<readonly JournalDeadLetter[]> {
    const { copies, entries } = this.#parts
    const journaled: JournalDeadLetter[] = []
    for (const { entry: given, ...deadLetter } of deadLetters) {
      const { position } = deadLetter
      let hasCopy = false
      if (state.deadLetters.isNew(deadLetter)) {
        const entry = stored.has(position) ? undefined : (given ?? (await entries.entryAt(position)))
        if (entry !== undefined) await copies.store(state.name, entry, position)
        if (entry !== undefined) stored.add(position)
        hasCopy = stored.has(position)
      }
      journaled.push({ ...deadLetter, hasCopy })
    }
    return journaled
  }
}
