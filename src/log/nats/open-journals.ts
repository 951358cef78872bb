import { ProcessPositions } from '../state/process-position.ts'
import type { Position } from '../store/contract.ts'
import { NatsClaims } from './journal/claims.ts'
import type { Connection } from './server/connection.ts'
import { DeadLetterCopies } from './journal/dead-letter-copies.ts'
import { NatsDeadLetters } from './journal/dead-letters.ts'
import { JournalChanges } from './journal/journal-changes.ts'
import type { JournaledEntries } from './journal/journaled-entries.ts'
import { Journals } from './journal/journals.ts'
import type { JournalLimits } from './journal/journal-state.ts'
import { Lease } from './journal/lease.ts'
import { ChunkedPayloads } from './server/chunked-payloads.ts'
import { NatsReaders } from './journal/readers.ts'
import { Streams } from './journal/streams.ts'
import { NatsWorkGroups } from './groups/work-groups.ts'

/** Settings of the journals of one open log. */
export interface OpenJournalsSettings {
  /** The name in the errors of others. */
  readonly owner: string
  readonly epoch: string
  readonly clock: () => number
  /** Aborted once the log is closed. Its reason is the error with which calls reject from then on. */
  readonly closed: AbortSignal
  /** Default `JOURNAL_LIMITS`. */
  readonly limits?: JournalLimits | undefined
}

/** The journals of one open log: claims, upstream positions, readers, processes and dead letters; and work groups, which need its lease. */
export class OpenJournals {
  readonly journals: Journals
  readonly claims: NatsClaims
  readonly streams: Streams
  readonly readers: NatsReaders
  readonly changes: JournalChanges
  /** The position before the first change of each process. */
  readonly processStart: Position
  readonly deadLetters: NatsDeadLetters
  readonly groups: NatsWorkGroups

  constructor(connection: Connection, settings: OpenJournalsSettings, entries: JournaledEntries) {
    const { owner, epoch, clock, closed } = settings
    const { log } = connection
    const journals = new Journals(connection, {
      log,
      epoch,
      order: (position) => entries.order(position),
      publish: (prepared) => entries.publish(prepared),
      limits: settings.limits,
    })
    const changes = new JournalChanges(connection, closed)
    this.changes = changes
    this.processStart = new ProcessPositions(log, epoch).start
    const lease = new Lease(connection, owner, connection.lease)
    const claims = new NatsClaims(journals, changes, { owner, lease, closed })
    const copies = new DeadLetterCopies(connection, new ChunkedPayloads(connection))
    this.groups = new NatsWorkGroups({ connection, changes, lease }, owner, closed)
    this.journals = journals
    this.claims = claims
    this.streams = new Streams(journals, claims)
    this.readers = new NatsReaders({ journals, claims, changes, copies, entries, clock })
    this.deadLetters = new NatsDeadLetters({ journals, claims, copies, entries })
  }

  /** Deletes the dead letters of a source, and what commits have appended because of it. */
  async forget(source: string): Promise<void> {
    await this.deadLetters.forget(source)
    await this.journals.forget(source)
  }

  /** Leaves every group and gives up every claim. Calls that wait reject before that, by the signal of the settings. */
  async close(): Promise<void> {
    // Others wait for the claims then.
    await this.groups.close()
    await this.claims.close()
  }
}
