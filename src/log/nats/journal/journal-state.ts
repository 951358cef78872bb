import type { Position } from '../../store/contract.ts'
import { ReaderDeadLetters } from '../../state/reader-dead-letters.ts'
import { Processes } from '../../state/processes.ts'
import type { PreparedEntry } from '../../store/new-entry.ts'
import type { JournalClaim, JournalHead, JournalMessage, SnapshotReference } from './journal-message.ts'

/** The settings and calls of a log that the fold of a journal needs. */
export interface JournalSettings {
  /** The log in errors. */
  readonly log: string
  readonly epoch: string
  /** A number that grows in the order of the log. Throws a LogPositionError for a position of another log. */
  readonly order: (position: Position) => number
  /** Appends the entries of a commit, except those that the log has. It may be called again with the same entries. */
  readonly publish: (entries: readonly PreparedEntry[]) => Promise<void>
  /** Default {@link JOURNAL_LIMITS}. */
  readonly limits?: JournalLimits | undefined
}

/** Limits of a journal: its size before its earlier messages are deleted, and the time for which it stays in memory. */
export interface JournalLimits {
  /** Number of messages. */
  readonly messages: number
  /** Size of the messages, in bytes. */
  readonly bytes: number
  /** Time for which an unused state stays in memory, in ms. After that, it is read again. */
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

/** The head of a name that was never claimed. */
const NO_CLAIM: JournalClaim = { token: 0, owner: '', instance: '', isHeld: false }

/** The state of a journal: the fold of its messages up to one of them. */
export class JournalState {
  readonly name: string
  /** The number of the last message; 0 for none. */
  sequence = 0
  /** Head of the last message. */
  head: JournalHead
  readonly processes: Processes
  /** Dead letters. A copy of the entry exists for each of them. */
  readonly deadLetters: ReaderDeadLetters<true>
  unpublished: readonly UnpublishedEntries[] = []
  /** Number and size in bytes of the messages since the earlier ones were deleted. */
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

  /** Whether there is nothing beside the head. */
  get isBare(): boolean {
    return (
      this.processes.process(this.name) === undefined &&
      this.deadLetters.size === 0 &&
      this.unpublished.length === 0
    )
  }

  /** The fields of a snapshot that are in no part. */
  get bareSnapshot(): SnapshotReference {
    return { token: '', parts: 0, bytes: 0, lastRedelivery: this.deadLetters.lastRedelivery, process: null }
  }

  /** Restores the fields of a snapshot that are in no part. */
  restore({ lastRedelivery, process, bytes }: SnapshotReference): void {
    this.deadLetters.restoreLastRedelivery(lastRedelivery)
    if (process !== null) this.processes.restore(this.name, process)
    this.snapshotBytes = bytes
  }

  /** Skips a message without effect, which was sent at the same moment as the one before it. */
  skip(sequence: number): void {
    this.sequence = sequence
  }

  /** Adds the next message. */
  apply(message: JournalMessage, sequence: number, bytes: number): void {
    const { head, commit, redelivered, removed, isDropped = false, snapshot } = message
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
    if (redelivered !== undefined) this.deadLetters.redeliver(redelivered)
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
