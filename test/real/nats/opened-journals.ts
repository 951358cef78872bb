import { onTestFinished } from 'vitest'
import { LogClosedError } from '../../../src/log/errors.ts'
import { MemoryPartitions } from '../../../src/log/memory/partitions.ts'
import { Connection } from '../../../src/log/nats/server/connection.ts'
import type { JournalLimits } from '../../../src/log/nats/journal/journal-state.ts'
import { OpenJournals } from '../../../src/log/nats/open-journals.ts'
import { natsProcesses } from '../../../src/log/nats/processes.ts'
import type { Commit, Fence } from '../../../src/log/store/contract.ts'
import type { ProcessStore } from '../../../src/log/store/process-store.ts'
import { change } from '../../operators/events.ts'
import type { NatsServer } from './server.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

/** The journals of one open log, with what a store does around them. */
export interface OpenedJournals extends OpenJournals {
  readonly connection: Connection
  readonly processes: ProcessStore
  commit(fence: Fence, commit: Commit): Promise<void>
}

/** One log, whose entries are in memory and whose journals are at a server. */
export class LogOfJournals {
  readonly entries = new MemoryPartitions('the log', 1)
  /** The commits' entries that were published, by their ids, each time. */
  readonly published: string[] = []
  /** Called before entries of a commit are published. What it throws rejects that. */
  beforePublishing: () => Promise<void> = async () => {}
  now = 1_000
  readonly #server: NatsServer
  readonly #name: string
  readonly #lease: number
  readonly #limits: JournalLimits | undefined
  readonly #clocks = { wall: () => this.now, monotonic: () => this.now }

  constructor(server: NatsServer, name: string, lease = 30_000, limits?: JournalLimits) {
    this.#limits = limits
    this.#server = server
    this.#name = name
    this.#lease = lease
  }

  /** Appends entries with these ids. Returns the positions after each. */
  append(...ids: readonly string[]): readonly string[] {
    return ids.map((id) => {
      this.entries.append([newEntry(change(id))], this.#clocks)
      return this.entries.end
    })
  }

  /** Opens it as another process does. Closed at the end of the test. */
  async open(owner: string): Promise<OpenedJournals> {
    const { entries } = this
    const connection = await Connection.open({
      client: { servers: this.#server.url, reconnectTimeWait: 50 },
      log: this.#name,
      partitions: 1,
      replicas: 1,
      lease: this.#lease,
    })
    const closing = new AbortController()
    const journals = new OpenJournals(
      connection,
      {
        owner,
        epoch: entries.epoch,
        clock: () => this.now,
        closed: closing.signal,
        ...(this.#limits && { limits: this.#limits }),
      },
      {
        checkPositions: async (positions) => {
          for (const position of positions) entries.check(position)
        },
        order: (position) => entries.order(position),
        entryAt: async (position) => entries.entryAt(position),
        publish: async (prepared) => {
          await this.beforePublishing()
          this.published.push(...prepared.map(({ id }) => id))
          entries.append(prepared, this.#clocks)
        },
        notify: () => {},
      },
    )
    let isClosed = false
    const close = async () => {
      if (isClosed) return
      isClosed = true
      closing.abort(new LogClosedError('the log'))
      try {
        await OpenJournals.prototype.close.call(journals)
      } finally {
        await connection.close()
      }
    }
    onTestFinished(() => close().catch(() => {}))
    return Object.assign(journals, {
      connection,
      processes: natsProcesses((effect) => effect(journals)),
      close,
      commit: async (fence: Fence, commit: Commit) => journals.readers.commit(fence, commit),
    })
  }
}
