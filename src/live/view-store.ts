import type { LiveSnapshot, RowState, ViewRequest } from '../protocol/live.ts'
import type { LiveStatus, ViewSnapshot } from './live.ts'
import type { LiveError } from './live-error.ts'
import type { Frame } from './frames.ts'
import { isSame } from './same.ts'

/** A frame about one view. */
export type ViewFrame = Extract<Frame, { readonly view: string }>

/** All that is known of a view's rows at one moment. */
export interface StoredRows {
  readonly rows: readonly RowState[]
  readonly position: string
}

/** The rows of one view in this tab, and who listens to them. */
export class ViewStore {
  readonly request: ViewRequest
  readonly listeners = new Set<(snapshot: ViewSnapshot<unknown>) => void>()
  /** How many tabs want the view, besides the listeners. */
  wantedElsewhere = 0
  /** Until it is no more wanted although there are no listeners. */
  lingers = false
  /** Whether the connection has sent all that there was. */
  isCurrent = false
  refusal: LiveError | undefined
  /** When the last frame came, in Unix ms; 0 before. */
  lastFrame = 0
  readonly initial: ViewSnapshot<unknown>
  #snapshot: ViewSnapshot<unknown>
  #status: LiveStatus
  #rows: Map<string, unknown>
  #position: string | undefined
  #gaps = 0
  /** The parts of a snapshot that is not complete. */
  #parts: RowState[] | undefined
  #isChanged = false
  #haveRowsChanged = false

  constructor(request: ViewRequest, initial: LiveSnapshot[string] | undefined) {
    this.request = request
    this.#rows = mapOf(initial?.rows ?? [])
    this.#position = initial?.position
    this.#status = { state: initial === undefined ? 'connecting' : 'stale', since: 0 }
    this.initial = {
      rows: new Map(this.#rows),
      ready: initial !== undefined,
      status: this.#status,
      gaps: 0,
    }
    this.#snapshot = this.initial
  }

  get isWanted(): boolean {
    return this.listeners.size > 0 || this.wantedElsewhere > 0 || this.lingers
  }

  get position(): string | undefined {
    return this.#position
  }

  /** What to ask of the gateway. */
  resume(): ViewRequest {
    return this.#position === undefined ? this.request : { ...this.request, after: this.#position }
  }

  get size(): number {
    return this.#rows.size
  }

  /** The last one that was published. */
  get snapshot(): ViewSnapshot<unknown> {
    return this.#snapshot
  }

  /** Of this moment; published with the next frame. */
  get status(): LiveStatus {
    return this.#status
  }

  set status(status: LiveStatus) {
    const { state, error } = this.#status
    if (state === status.state && error === status.error) return
    this.#status = status
    this.#isChanged = true
  }

  /** All rows, for another tab or the disk; undefined before the first ones. */
  stored(): StoredRows | undefined {
    return this.#position === undefined ? undefined : { rows: [...this.#rows], position: this.#position }
  }

  /** Takes a frame of the view. Returns whether the position has moved. */
  take(frame: ViewFrame): boolean {
    const before = this.#position
    switch (frame.kind) {
      case 'snapshot':
        if (frame.first) this.#parts = []
        // A part without the parts before it is of no use: a snapshot follows on the next connection.
        this.#parts?.push(...frame.rows)
        if (frame.position === undefined) return this.#parts !== undefined
        if (this.#parts !== undefined) this.replace({ rows: this.#parts, position: frame.position })
        return true
      case 'changes':
        for (const [key, state] of frame.rows) this.#change(key, state)
        this.#position = frame.position
        break
      case 'position':
        this.#position = frame.position
        break
      case 'current':
        this.isCurrent = true
        return true
      case 'gap':
        if (frame.reason === 'missed') this.#gaps++
        this.#isChanged = true
        break
      case 'denied':
        break
    }
    return this.#position !== before
  }

  /** Replaces the rows. Those that are equal stay the same objects. */
  replace({ rows, position }: StoredRows): void {
    const next = mapOf(rows)
    for (const [key, row] of next) {
      const old = this.#rows.get(key)
      if (isSame(old, row)) next.set(key, old)
      else this.#haveRowsChanged = true
    }
    if (next.size !== this.#rows.size || this.#position === undefined) this.#haveRowsChanged = true
    this.#rows = next
    this.#position = position
    this.#parts = undefined
  }

  /** Forgets the rows. */
  clear(): void {
    this.#haveRowsChanged ||= this.#position !== undefined
    this.#rows = new Map()
    this.#position = undefined
    this.#parts = undefined
  }

  /** The connection has ended: parts of a snapshot do not go on with those of another one. */
  disconnected(): void {
    this.#parts = undefined
    this.isCurrent = false
    this.refusal = undefined
  }

  /** Makes what has changed the snapshot. Returns whether there was a change. */
  publish(): boolean {
    if (!this.#isChanged && !this.#haveRowsChanged) return false
    this.#snapshot = {
      rows: this.#haveRowsChanged ? new Map(this.#rows) : this.#snapshot.rows,
      ready: this.#snapshot.ready || this.#position !== undefined,
      status: this.#status,
      gaps: this.#gaps,
    }
    this.#isChanged = false
    this.#haveRowsChanged = false
    return true
  }

  #change(key: string, state: unknown): void {
    if (state === null) {
      if (this.#rows.delete(key)) this.#haveRowsChanged = true
    } else if (!isSame(this.#rows.get(key), state)) {
      this.#rows.set(key, state)
      this.#haveRowsChanged = true
    }
  }
}

function mapOf(rows: readonly RowState[]): Map<string, unknown> {
  const map = new Map(rows)
  for (const [key, state] of rows) if (state === null) map.delete(key)
  return map
}
