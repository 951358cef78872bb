import { DatabaseSync } from 'node:sqlite'
import type { SchedulerLike } from 'rxjs'
import { memoryCheckpointStore } from 'rivulet'
import type { CheckpointChanges, CheckpointStore } from 'rivulet'
import { sqliteCheckpointStore, sqliteInbox } from 'rivulet/state/sqlite'
import type { Inbox } from '../../../src/state/inbox.ts'
import { KillableInbox } from './inbox.ts'
import type { InboxRows } from './inbox.ts'

/** How one save goes. */
export interface SaveScript {
  /** How long it takes, in ms; 0 is done within the call. */
  readonly takes: number
  /** Whether it is written at once, so that a kill meanwhile loses only the word of it. */
  readonly early: boolean
  readonly fails: boolean
}

/** What outlives a process. */
export interface Disk {
  /** Opens the state for one process, which ends with `kill` or by closing what it opened. */
  open(): Opened
  /** The positions that were saved, by the names of their streams. */
  readonly positions: ReadonlyMap<string, string>
  /** How many webhooks wait to be done. */
  readonly waiting: number
  /** Frees what this process has opened. */
  dispose(): void
}

/** What one process has opened. */
export interface Opened {
  readonly store: CheckpointStore
  readonly inbox: Inbox
  /** Wraps an effect so that it happens exactly once; only where the disk can do that. */
  readonly exactlyOnce: ReturnType<typeof sqliteCheckpointStore>['exactlyOnce'] | undefined
  /** From now on nothing is written any more. */
  kill(): void
  /** Closes what the checkpoint does not close by itself. */
  close(): void
}

/** State in memory, with an inbox that loses what it has not written. */
export function memoryDisk(scheduler: SchedulerLike, saves: () => SaveScript): Disk {
  const store = memoryCheckpointStore()
  const rows: InboxRows = new Map()
  const positions = new Map<string, string>()
  return {
    positions,
    get waiting() {
      return [...rows.values()].filter((delivery) => delivery !== undefined).length
    },
    open() {
      const killable = new KillableStore(store, positions, scheduler, saves)
      const inbox = new KillableInbox(rows)
      const kill = () => {
        killable.kill()
        inbox.kill()
      }
      return { store: killable, inbox, exactlyOnce: undefined, kill, close: () => {} }
    },
    dispose: () => {},
  }
}

/** State in SQLite. */
export function sqliteDisk(scheduler: SchedulerLike, saves: () => SaveScript): Disk {
  const database = new DatabaseSync(':memory:')
  const positions = new Map<string, string>()
  return {
    positions,
    get waiting() {
      const row = database.prepare('SELECT count(*) AS n FROM rivulet_inbox WHERE done_at IS NULL').get()
      return Number(row?.['n'])
    },
    open() {
      const store = sqliteCheckpointStore(database)
      const killable = new KillableStore(store, positions, scheduler, saves)
      const inbox = sqliteInbox(database)
      const kill = () => {
        killable.kill()
        // It writes what it was about to write, as if the kill had come right after.
        inbox.close()
      }
      const exactlyOnce: typeof store.exactlyOnce = (effect) => store.exactlyOnce(effect)
      return { store: killable, inbox, exactlyOnce, kill, close: () => inbox.close() }
    },
    dispose: () => database.close(),
  }
}

/** A store whose saves take their time, fail, or are cut off by a kill. */
class KillableStore implements CheckpointStore {
  readonly #store: CheckpointStore
  readonly #positions: Map<string, string>
  readonly #scheduler: SchedulerLike
  readonly #saves: () => SaveScript
  #killed = false

  constructor(
    store: CheckpointStore,
    positions: Map<string, string>,
    scheduler: SchedulerLike,
    saves: () => SaveScript,
  ) {
    this.#store = store
    this.#positions = positions
    this.#scheduler = scheduler
    this.#saves = saves
  }

  load(): ReturnType<CheckpointStore['load']> {
    return this.#store.load()
  }

  async save(changes: CheckpointChanges): Promise<void> {
    const { takes, early, fails } = this.#saves()
    if (this.#killed) throw new Error('killed')
    if (early && !fails) await this.#write(changes)
    if (takes > 0) await new Promise<void>((resolve) => this.#scheduler.schedule(() => resolve(), takes))
    if (this.#killed) throw new Error('killed')
    if (fails) throw new Error('the disk is full')
    if (!early) await this.#write(changes)
  }

  async #write(changes: CheckpointChanges): Promise<void> {
    await this.#store.save(changes)
    for (const [stream, position] of changes.positions) this.#positions.set(stream, position)
  }

  close(): void {
    if (!this.#killed) void this.#store.close()
  }

  kill(): void {
    this.close()
    this.#killed = true
  }
}
