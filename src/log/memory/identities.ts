import { isAtLeastAsComplete } from '../../protocol/event.ts'
import { mergeDuplicates } from '../store/completeness.ts'
import { advanced, isMarkDue, isSweepDue } from '../store/identity-age.ts'
import type { IdentityLimits, Mark, Uptime } from '../store/identity-age.ts'
import type { EntryIdentity, PreparedEntry } from '../store/new-entry.ts'
import type { StoredEntry } from './partition.ts'

/** The latest revision of an identity. */
interface LatestRevision {
  readonly revision: number
  readonly completeness: number
  /** The number of the append of its latest revision. */
  readonly append: number
  /** The latest revision; undefined once it was deleted. */
  readonly entry: StoredEntry | undefined
  readonly isForgotten?: boolean
}

/** Identities by source and id. */
class ByIdentity<Value> {
  readonly #sources = new Map<string, Map<string, Value>>()
  size = 0

  get({ source, id }: EntryIdentity): Value | undefined {
    return this.#sources.get(source)?.get(id)
  }

  set({ source, id }: EntryIdentity, value: Value): void {
    const ids = this.#sources.get(source)
    if (ids?.has(id) !== true) this.size += 1
    if (ids === undefined) this.#sources.set(source, new Map([[id, value]]))
    else ids.set(id, value)
  }

  deleteIf(isDeleted: (value: Value) => boolean): void {
    for (const [source, ids] of this.#sources) {
      for (const [id, value] of ids) if (isDeleted(value) && ids.delete(id)) this.size -= 1
      if (ids.size === 0) this.#sources.delete(source)
    }
  }
}

/** The identities of the entries of a log in memory, and their age. */
export class MemoryIdentities {
  readonly #limits: IdentityLimits
  readonly #known = new ByIdentity<LatestRevision>()
  #added = 0
  #uptime: Uptime = { uptime: 0, clock: 0 }
  #marks: readonly Mark[] = []
  #swept = 0

  constructor(limits: IdentityLimits) {
    this.#limits = limits
  }

  /** An append. Nothing is changed before its `commit`, when all of its entries are known to be sound. */
  merging() {
    const staged = new ByIdentity<LatestRevision>()
    const changes: [PreparedEntry, LatestRevision][] = []
    return {
      /** The entry as it is to be stored; undefined for one that is known. */
      add: (
        entry: PreparedEntry,
        placed: Pick<StoredEntry, 'recorded' | 'group' | 'append'>,
      ): StoredEntry | undefined => {
        const earlier = staged.get(entry) ?? this.#known.get(entry)
        if (earlier !== undefined && isAtLeastAsComplete(earlier.completeness, entry.completeness))
          return undefined
        const revision = (earlier?.revision ?? 0) + 1
        const stored = { ...merged(earlier, entry), ...placed, revision }
        const { completeness } = stored
        const known = { revision, completeness, append: placed.append, entry: stored }
        staged.set(entry, known)
        changes.push([entry, known])
        return stored
      },
      commit: (append: number, clock: number): void => {
        const before = this.#known.size
        for (const [entry, known] of changes) this.#known.set(entry, known)
        this.#added += this.#known.size - before
        const uptime = advanced(this.#uptime, clock)
        const isDue = isMarkDue(this.#uptime, uptime)
        this.#uptime = uptime
        if (isDue) {
          this.#marks = [...this.#marks, { uptime: uptime.uptime, identities: this.#added, position: append }]
        }
      },
    }
  }

  /** An entry was deleted. Its identity stays. */
  deleted(entry: StoredEntry, isForgotten = false): void {
    const known = this.#known.get(entry)
    if (known?.entry === entry) this.#known.set(entry, { ...known, entry: undefined, isForgotten })
  }

  /** Whether the latest revision was forgotten. */
  isForgotten(identity: EntryIdentity): boolean {
    return this.#known.get(identity)?.isForgotten === true
  }

  /**
   * Deletes identities of deleted entries that are old enough. Returns whether there are no more of them for now.
   *
   * @param deleted The number of the last append whose entries are all deleted.
   */
  trim(deleted: number): boolean {
    const { minUptime, minNewer } = this.#limits
    const mark = this.#marks.findLast(
      ({ uptime, identities, position }) =>
        uptime <= this.#uptime.uptime - minUptime &&
        identities <= this.#added - minNewer &&
        position <= deleted,
    )
    if (mark === undefined || !isSweepDue(mark.identities - this.#swept, this.#known.size)) return true
    this.#known.deleteIf(({ append }) => append <= mark.position)
    this.#swept = mark.identities
    this.#marks = this.#marks.filter(({ position }) => position >= mark.position)
    return true
  }
}

/** The entry with what only the earlier one has, which may have been deleted. */
function merged(known: LatestRevision | undefined, entry: PreparedEntry): PreparedEntry {
  if (known === undefined || isAtLeastAsComplete(entry.completeness, known.completeness)) return entry
  const completeness = known.completeness | entry.completeness
  if (known.entry === undefined) return { ...entry, completeness }
  const event = mergeDuplicates(JSON.parse(known.entry.json), JSON.parse(entry.json))
  return { ...entry, completeness, json: JSON.stringify(event) }
}
