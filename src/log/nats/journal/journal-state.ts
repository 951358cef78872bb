import type { Position } from '../../store/contract.ts'
import { ReaderDeadLetters } from '../../memory-log/reader-dead-letters.ts'
import { Processes } from '../../memory-log/processes.ts'
import type { PreparedEntry } from '../../store/prepared-entry.ts'
import type { JournalClaim, JournalHead, JournalMessage, SnapshotReference } from './journal-message.ts'

/** What the fold of a journal needs to know of its log. */
export interface JournalSettings {
  /** The log in errors. */
  readonly log: string
  readonly epoch: string
  /** A number that grows in the order of the log. Throws a LogPositionError for a position of another log. */
  readonly order: (position: Position) => number
  /** Appends the entries of a commit, but those that the log has. They may come a second time. */
  readonly publish: (entries: readonly PreparedEntry[]) => Promise<void>
  /** Default {@link JOURNAL_LIMITS}. */
  readonly limits?: JournalLimits | undefined
}

/** How long a journal may become before its earlier messages are deleted, and how long it is followed. */
export interface JournalLimits {
  /** Number of messages. */
  readonly messages: number
  /** Size of the messages, in bytes. */
  readonly bytes: number
  /** How long what it makes is kept in memory without being used, in ms. It is read again then. */
  readonly idle: number
}

export const JOURNAL_LIMITS: JournalLimits = {
  messages: 512,
  bytes: 4 * 1024 * 1024,
  idle: 5 * 60_000,
}

/** Entries of a commit that may not be in the log yet. */
export interface UnpublishedEntries {
  /** The number of the commit. */
  readonly sequence: number
  readonly entries: readonly PreparedEntry[]
}

/** Nothing was claimed yet. */
const NO_CLAIM: JournalClaim = { token: 0, owner: '', instance: '', isHeld: false }

/** What the messages of a journal up to one of them make together. */
export class JournalState {
  readonly name: string
  /** The number of the last message; 0 for none. */
  sequence = 0
  /** Of the last message. */
  head: JournalHead
  readonly processes: Processes
  /** Of each dead letter there is a copy of its entry. */
  readonly deadLetters: ReaderDeadLetters<true>
  unpublished: readonly UnpublishedEntries[] = []
  /** Since the earlier messages were deleted: their number, and their size in bytes. */
  length = 0
  bytes = 0
  /** The size of the snapshot before them, in bytes. */
  snapshotBytes = 0

  constructor(name: string, { log, epoch, order }: JournalSettings) {
    this.name = name
    this.processes = new Processes(log, epoch)
    this.deadLetters = new ReaderDeadLetters(order)
    this.head = {
      name,
      claim: NO_CLAIM,
      position: null,
      reader: null,
      holdsRetention: true,
      pausedToken: null,
      deadLetters: 0,
      published: 0,
    }
  }

  /** Whether the head is all there is. */
  get isBare(): boolean {
    return (
      this.processes.memo(this.name) === undefined &&
      this.deadLetters.size === 0 &&
      this.unpublished.length === 0
    )
  }

  /** What has no parts of a snapshot. */
  get bareSnapshot(): SnapshotReference {
    return { token: '', parts: 0, bytes: 0, lastMark: this.deadLetters.lastMark, process: null }
  }

  /** Puts back what is not in the parts of a snapshot. */
  restore({ lastMark, process, bytes }: SnapshotReference): void {
    this.deadLetters.restoreLastMark(lastMark)
    if (process !== null) this.processes.restore(this.name, process)
    this.snapshotBytes = bytes
  }

  /** Passes over a message that was sent at the same moment as the one before it, and is without effect. */
  skip(sequence: number): void {
    this.sequence = sequence
  }

  /** Adds the next message. */
  apply(message: JournalMessage, sequence: number, bytes: number): void {
    const { head, commit, marked, removed, isDropped = false, snapshot } = message
    this.sequence = sequence
    this.head = head
    if (snapshot === undefined) {
      this.length += 1
      this.bytes += bytes
    } else {
      this.length = 0
      this.bytes = 0
      this.snapshotBytes = snapshot.bytes
    }
    if (isDropped) this.processes.drop(this.name)
    if (marked !== undefined) this.deadLetters.mark(marked)
    if (removed !== undefined) this.deadLetters.remove(removed)
    if (commit !== undefined) {
      for (const deadLetter of commit.deadLetters)
        this.deadLetters.put(deadLetter, deadLetter.hasCopy || undefined, commit.now)
      this.deadLetters.remove(commit.redelivered)
      // Unique, and greater than those before, also after a process of this name was removed.
      if (commit.process !== undefined)
        this.processes.commit(this.name, commit.process, head.claim.instance, sequence)
      if (commit.entries.length > 0) {
        this.unpublished = [...this.unpublished, { sequence, entries: commit.entries }]
      }
    }
    this.#forgetPublished()
  }

  /** The entries of commits up to this number are in the log. The next message says so. */
  published(sequence: number): void {
    this.head = { ...this.head, published: sequence }
    this.#forgetPublished()
  }

  #forgetPublished(): void {
    if (this.unpublished.length === 0) return
    this.unpublished = this.unpublished.filter(({ sequence }) => sequence > this.head.published)
  }
}
