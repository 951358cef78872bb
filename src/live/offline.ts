import type { Environment } from './environment.ts'
import { OfflineRows } from './offline-rows.ts'
import type { KeptRows } from './offline-rows.ts'
import type { StoredRows, ViewStore } from './view-store.ts'

/** How long rows collect before they are written, in ms. */
const COLLECT = 2_000
/** How long to wait for the token, which decides whose rows to show, in ms. */
const PATIENCE = 1_000

/** The part of the client that the copy on the disk uses. */
export interface OfflineOwner {
  /** The rights of the token; undefined before the first one. */
  readonly rights: string | undefined
  readonly stores: readonly ViewStore[]
  /** Rows have come from the disk. */
  settle(): void
  /** The rows that came from the disk belong to another subject. */
  forget(): void
}

/** The copy of the last rows on the disk. Rows of one subject are never shown to another subject whose token is present. */
export class Offline {
  readonly #environment: Environment
  readonly #owner: OfflineOwner
  readonly #disk: OfflineRows
  #kept: KeptRows | undefined
  /** The positions that are on the disk, by address. */
  readonly #saved = new Map<string, string>()
  #isLate: boolean
  /** Whether rows of the disk were shown before the first token. */
  #hasGuessed = false
  #cancelSave: (() => void) | undefined
  /** A database may hang: copies of the rows must not pile up. */
  #isSaving = false
  #cancelPatience: () => void

  constructor(indexedDB: IDBFactory, gateway: string, environment: Environment, owner: OfflineOwner) {
    this.#environment = environment
    this.#owner = owner
    this.#disk = new OfflineRows(indexedDB, gateway, () => environment.now())
    this.#isLate = !environment.isOnline()
    this.#cancelPatience = environment.later(PATIENCE, () => {
      this.#isLate = true
      this.seed()
    })
    void this.#disk.load().then((kept) => {
      this.#kept = kept
      this.seed()
    })
  }

  /** Gives rows of the disk to the views without rows. */
  seed(): void {
    const kept = this.#kept
    const rights = this.#owner.rights
    if (kept === undefined || (rights === undefined && !this.#isLate)) return
    if (rights !== undefined && rights !== kept.rights) {
      this.forget()
      if (this.#hasGuessed) this.#owner.forget()
      return
    }
    this.#hasGuessed ||= rights === undefined
    let hasSeeded = false
    for (const store of this.#owner.stores) {
      const rows = kept.views.get(store.address)
      if (rows === undefined || store.position !== undefined || store.refusal !== undefined) continue
      store.replace(rows)
      hasSeeded = true
    }
    if (hasSeeded) this.#owner.settle()
  }

  /** Rows have changed. */
  changed(): void {
    this.#cancelSave ??= this.#environment.later(COLLECT, () => this.save())
  }

  save(): void {
    this.#cancelSave?.()
    this.#cancelSave = undefined
    const rights = this.#owner.rights
    if (rights === undefined) return
    if (this.#isSaving) return this.changed()
    const views = new Map<string, StoredRows>()
    for (const store of this.#owner.stores) {
      if (store.position === undefined || this.#saved.get(store.address) === store.position) continue
      const rows = store.stored()
      if (rows === undefined) continue
      views.set(store.address, rows)
      this.#saved.set(store.address, rows.position)
    }
    if (views.size === 0) return
    this.#isSaving = true
    void this.#disk.save(rights, views).finally(() => (this.#isSaving = false))
  }

  /** Removes a view from the disk, or all of them. */
  forget(address?: string): void {
    if (address === undefined) {
      this.#kept = undefined
      this.#saved.clear()
    } else this.#saved.delete(address)
    void this.#disk.clear(address)
  }

  /** Removes all, and does no more. */
  end(): Promise<void> {
    this.#cancelSave?.()
    this.#cancelPatience()
    return this.#disk.clear()
  }
}
