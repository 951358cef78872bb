import { DatabaseSync } from 'node:sqlite'
import type { SchedulerLike } from 'rxjs'
import { memoryCheckpointStore } from 'rivulet'
import type { CheckpointChanges, CheckpointStore } from 'rivulet'
import { sqliteCheckpointStore, sqliteInbox } from 'rivulet/state/sqlite'
import type { Inbox } from '../../../src/state/inbox.ts'
import { KillableInbox } from './inbox.ts'
import type { InboxRows } from './inbox.ts'

/** The script of one save. */
export interface SaveScript {
  /** The duration in ms; 0 is synchronous. */
  readonly takes: number
  /** Whether it is written at the start, so that a kill meanwhile loses only the confirmation. */
  readonly early: boolean
  readonly fails: boolean
}

/** The storage that survives a process. */
export interface Disk {
  /** Opens the state for one process, until `kill` or until everything opened is closed. */
  open(): Opened
  /** The saved positions, by the names of their streams. */
  readonly positions: ReadonlyMap<string, string>
  /** The number of webhooks that are not done. */
  readonly waiting: number
  /** Releases all resources. */
  dispose(): void
}

/** The state of one process. */
export interface Opened {
  readonly store: CheckpointStore
  readonly inbox: Inbox
  /** Wraps an effect so that it happens exactly once; undefined where the storage does not support that. */
  readonly exactlyOnce: ReturnType<typeof sqliteCheckpointStore>['exactlyOnce'] | undefined
  /** Stops all writes. */
  kill(): void
  /** Closes everything that the checkpoint does not close. */
  close(): void
}

/** State in memory, with an inbox that loses pending writes. */
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
        // Pending writes complete, as if the kill came right after them.
        inbox.close()
      }
      const exactlyOnce: typeof store.exactlyOnce = (effect) => store.exactlyOnce(effect)
      return { store: killable, inbox, exactlyOnce, kill, close: () => inbox.close() }
    },
    dispose: () => database.close(),
  }
}

/** A store whose saves take time, fail, or are interrupted by a kill. */
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
