import type { Position } from '../../log/store/contract.ts'
import type { StateChange } from '../../log/store/process-store.ts'
import type { Access } from '../access/access.ts'
import { bytesOf, frameOf, frameText } from './frames.ts'
import { RowSet } from './row-set.ts'
import type { Scope, ViewRows } from './view-rows.ts'
import { GAPS_KEY } from './view-process.ts'

/** The rows of one scope, and their frames, grouped by accesses with the same rights. */
interface ScopedRows {
  readonly rows: RowSet
  readonly encoded: Map<string, Uint8Array>
}

/** Changes of a view from one position to another. They never change, so that all followers at its beginning can share it. */
export class Segment {
  readonly to: Position
  /** The size of the states, in characters, plus that of the frames, in bytes. */
  length: number
  readonly #view: ViewRows
  /** Whether the view has missed entries of the log here. */
  readonly #isGap: boolean
  /** The rows by scope. */
  readonly #rows = new Map<string, StateChange[]>()
  readonly #scoped = new Map<string, ScopedRows>()

  constructor(view: ViewRows, to: Position, changes: readonly StateChange[]) {
    this.#view = view
    this.to = to
    this.length = 0
    let isGap = false
    for (const { key, state } of changes) {
      this.length += key.length + (state?.length ?? 0)
      if (key === GAPS_KEY) {
        isGap ||= state !== null
        continue
      }
      const scope = view.scopeOf(key)
      const rows = this.#rows.get(scope)
      if (rows === undefined) this.#rows.set(scope, [{ key, state }])
      else rows.push({ key, state })
    }
    this.#isGap = isGap
  }

  /** The frames for one access, encoded once for all accesses that see the same rows; undefined if it sees no change. */
  framesFor(scope: Scope, access: Access): Uint8Array | undefined {
    const scoped = this.#scopedRows(scope)
    const visible = scoped?.rows.visibleTo(access)
    if (visible === undefined || visible.isEmpty) return this.#isGap ? this.#gapFrames(scope) : undefined
    const encoded = scoped?.encoded.get(visible.sameFor)
    if (encoded !== undefined) return encoded
    const { address } = scope
    const changes = `{"view":${JSON.stringify(address)},"rows":${visible.json()},"position":${JSON.stringify(this.to)}}`
    const gap = this.#isGap ? frameText('gap', { view: address, reason: 'missed' }) : ''
    const bytes = bytesOf(gap + frameOf('changes', changes))
    scoped?.encoded.set(visible.sameFor, bytes)
    this.length += bytes.byteLength
    this.#view.counters.encoded(bytes.byteLength)
    return bytes
  }

  #scopedRows({ prefix }: Scope): ScopedRows | undefined {
    const known = this.#scoped.get(prefix)
    const rows = this.#rows.get(prefix)
    if (known !== undefined || rows === undefined) return known
    const scoped = { rows: new RowSet(rows, (key) => this.#view.sourceOf(key)), encoded: new Map() }
    this.#scoped.set(prefix, scoped)
    return scoped
  }

  /** The frames of a gap. They have the position, so that a client that resumes does not get the gap again. */
  #gapFrames({ address }: Scope): Uint8Array {
    return bytesOf(
      frameText('gap', { view: address, reason: 'missed' }) +
        frameText('position', { view: address, position: this.to }),
    )
  }
}
