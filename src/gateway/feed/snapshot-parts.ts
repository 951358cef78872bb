import type { Position } from '../../log/store/contract.ts'
import type { StateChange } from '../../log/store/process-store.ts'
import type { Access } from '../access/access.ts'
import type { Scope, ViewRows } from './view-rows.ts'
import { bytesOf, frameOf } from './frames.ts'
import { RowSet } from './row-set.ts'
import { GAPS_KEY } from './view-process.ts'

/** Maximum number of rows in a part of a snapshot, and about its length in characters. */
const MAX_ROWS = 500
const MAX_LENGTH = 64 * 1024

/** How long a part is shared, in ms, and the maximum number of shared parts. */
const MAX_AGE = 1_000
const MAX_PARTS = 64

/** Which part of the rows. */
export interface PartPlace {
  readonly scope: Scope
  /** The last key of the part before; undefined for the first part. */
  readonly after: string | undefined
  /** The position of the first part; undefined for that itself. */
  readonly since: Position | undefined
}

/** A part of a view's rows, and its frames, grouped by accesses with the same rights. */
export class SnapshotPart {
  /** The position of the first part. */
  readonly position: Position
  /** The last key; undefined if no part follows. */
  readonly last: string | undefined
  /** Whether the view has missed entries of the log before this part was read. */
  readonly hasMissed: boolean
  readonly #view: ViewRows
  readonly #place: PartPlace
  readonly #rows: RowSet
  readonly #encoded = new Map<string, Uint8Array>()

  constructor(
    view: ViewRows,
    place: PartPlace,
    part: Pick<SnapshotPart, 'position' | 'last' | 'hasMissed'> & { readonly states: readonly StateChange[] },
  ) {
    this.#view = view
    this.#place = place
    this.position = part.position
    this.last = part.last
    this.hasMissed = part.hasMissed
    const rows = part.states.filter(({ key }) => key !== GAPS_KEY)
    this.#rows = new RowSet(rows, (key) => view.sourceOf(key))
  }

  /** The frame for an access. */
  frameFor(access: Access): Uint8Array {
    const visible = this.#rows.visibleTo(access)
    const known = this.#encoded.get(visible.sameFor)
    if (known !== undefined) return known
    const { scope, since } = this.#place
    const first = since === undefined
    const end = this.last === undefined ? `,"position":${JSON.stringify(this.position)}` : ''
    const data = `{"view":${JSON.stringify(scope.address)},"rows":${visible.json()},"first":${first}${end}}`
    const bytes = bytesOf(frameOf('snapshot', data))
    this.#encoded.set(visible.sameFor, bytes)
    this.#view.counters.encoded(bytes.byteLength)
    return bytes
  }
}

/**
 * The parts of snapshots of a view. Clients that come together, such as after a restart, share them. A part may be older than the
 * call that gets it: it has the position from which the client follows the changes.
 */
export class SnapshotParts {
  readonly #view: ViewRows
  readonly #parts = new Map<string, { readonly read: number; readonly part: Promise<SnapshotPart> }>()

  constructor(view: ViewRows) {
    this.#view = view
  }

  /**
   * Reads a part. Rejects with a `LogPositionError` if the view was built again after the first part.
   *
   * @param isFresh Whether the part must be read after this call.
   */
  async read(place: PartPlace, isFresh: boolean): Promise<SnapshotPart> {
    const { scope, after, since } = place
    const key = JSON.stringify([scope.prefix, after, since])
    const now = performance.now()
    const known = this.#parts.get(key)
    if (known !== undefined && !isFresh && now - known.read <= MAX_AGE) return known.part
    const part = this.#read(place)
    this.#parts.delete(key)
    this.#parts.set(key, { read: now, part })
    for (const [oldest, { read }] of this.#parts) {
      if (now - read <= MAX_AGE && this.#parts.size <= MAX_PARTS) break
      this.#parts.delete(oldest)
    }
    return part
  }

  clear(): void {
    this.#parts.clear()
  }

  async #read(place: PartPlace): Promise<SnapshotPart> {
    const { scope, after, since } = place
    const { states, reader } = this.#view
    const { below, own: ownKey } = scope
    const page = await states.range(reader, {
      prefix: below,
      after,
      since,
      limit: MAX_ROWS,
      maxLength: MAX_LENGTH,
    })
    const rows: StateChange[] = [...page.states]
    let hasMissed = false
    if (since === undefined) {
      // After the page: what changes between them follows from its position.
      const keys = ownKey === undefined ? [GAPS_KEY] : [GAPS_KEY, ownKey]
      const [gaps, own] = await states.states(reader, keys)
      hasMissed = typeof gaps === 'string'
      if (ownKey !== undefined && typeof own === 'string') rows.unshift({ key: ownKey, state: own })
    }
    const last = page.isEnd ? undefined : page.states.at(-1)?.key
    return new SnapshotPart(this.#view, place, {
      position: since ?? page.position,
      last,
      hasMissed,
      states: rows,
    })
  }
}
