import type { LiveSnapshot, RowState, ViewRequest } from '../protocol/live.ts'
import type { LiveStatus, ObservableView, ViewSnapshot } from './live.ts'
import { LiveError } from './live-error.ts'
import type { ViewFrame } from './frames.ts'

/** The rows of a view at one moment, with their position. */
export interface StoredRows {
  readonly rows: readonly RowState[]
  readonly position: string
}

/** The rows of one view in this tab. */
export class ViewStore {
  readonly address: string
  readonly request: ViewRequest
  /** The object that the page has of the view. As long as the page has it, it has these rows. */
  view: ObservableView<unknown> | undefined
  readonly listeners = new Set<(snapshot: ViewSnapshot<unknown>) => void>()
  /** Whether it stays wanted for a while although no listener is left. */
  lingers = false
  /** Cancels the end of that. */
  cancelLinger = () => {}
  /** Whether the connection has sent all that there was. */
  isCurrent = false
  /** Why the gateway refuses the view, or cannot make it now. */
  refusal: LiveError | undefined
  /** When the last frame came, in Unix ms; 0 before. */
  lastFrame = 0
  /** The status at this moment; published with the next frame of the page. */
  status: LiveStatus
  gaps = 0
  /** The position of the rows; undefined before the first ones. */
  position: string | undefined
  /** The snapshot that was published last. */
  snapshot: ViewSnapshot<unknown>
  readonly initial: ViewSnapshot<unknown>
  #rows: Map<string, unknown>
  /** The parts of a snapshot that is not complete. */
  #parts: RowState[] | undefined
  #haveRowsChanged = false
  /** The next publication is a snapshot, not changes. */
  #isRenewed = false

  constructor(address: string, request: ViewRequest, initial: LiveSnapshot[string] | undefined) {
    this.address = address
    this.request = request
    this.#rows = mapOf(initial?.rows ?? [])
    this.position = initial?.position
    const ready = initial !== undefined
    this.status = { state: ready ? 'stale' : 'connecting', since: 0 }
    this.initial = { rows: new Map(this.#rows), ready, status: this.status, gaps: 0 }
    this.snapshot = this.initial
  }

  /** Whether this tab wants it. */
  get isWanted(): boolean {
    return this.listeners.size > 0 || this.lingers
  }

  get size(): number {
    return this.#rows.size
  }

  /** The request to the gateway. */
  resume(): ViewRequest {
    return this.position === undefined ? this.request : { ...this.request, after: this.position }
  }

  /** All rows, for another tab or the disk; undefined before the first ones, and until the last part of a snapshot has come. */
  stored(): StoredRows | undefined {
    return this.position === undefined || this.#parts !== undefined
      ? undefined
      : { rows: [...this.#rows], position: this.position }
  }

  /** Takes a frame of the view. Returns whether it is progress. */
  take(frame: ViewFrame): boolean {
    const before = this.position
    switch (frame.kind) {
      case 'snapshot':
        if (frame.first) this.#parts = []
        // Parts without the first one are of no use.
        if (this.#parts === undefined) return false
        for (const row of frame.rows) this.#parts.push(row)
        if (frame.position !== undefined) this.replace({ rows: this.#parts, position: frame.position })
        return true
      case 'changes':
      case 'position':
        if (before === undefined) throw new LiveError('protocol', `${frame.kind} came before a snapshot`)
        if (frame.kind === 'changes') for (const [key, state] of frame.rows) this.#change(key, state)
        this.position = frame.position
        break
      case 'current':
        this.isCurrent = true
        this.#isRenewed = false
        return true
      case 'gap':
        // Before a snapshot, the gateway says only whether there was any.
        if (frame.reason !== 'missed') this.#isRenewed = true
        else if (this.position === undefined || this.#isRenewed) this.gaps = Math.max(this.gaps, 1)
        else this.gaps++
        break
      case 'denied':
        // A view that cannot be made now may continue from its position.
        if (frame.problem.code === 'unavailable') this.isCurrent = false
        else this.clear()
    }
    return this.position !== before
  }

  /** Replaces the rows. Equal rows stay the same objects. */
  replace({ rows, position }: StoredRows): void {
    const next = mapOf(rows)
    this.#haveRowsChanged ||= next.size !== this.#rows.size
    for (const [key, row] of next) {
      const old = this.#rows.get(key)
      if (isSame(old, row)) next.set(key, old)
      else this.#haveRowsChanged = true
    }
    this.#rows = next
    this.position = position
    this.#parts = undefined
  }

  /** Forgets the rows. */
  clear(): void {
    this.#haveRowsChanged ||= this.#rows.size > 0
    this.#rows = new Map()
    this.position = undefined
    this.disconnected()
  }

  /** The parts of a snapshot do not continue those of another connection. */
  disconnected(): void {
    this.#parts = undefined
    this.isCurrent = false
    this.refusal = undefined
  }

  /** Publishes the changes. */
  publish(): boolean {
    const { rows, ready, status, gaps } = this.snapshot
    const isReady = ready || this.position !== undefined
    if (!this.#haveRowsChanged && ready === isReady && status === this.status && gaps === this.gaps)
      return false
    this.snapshot = {
      rows: this.#haveRowsChanged ? new Map(this.#rows) : rows,
      ready: isReady,
      status: this.status,
      gaps: this.gaps,
    }
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
  return new Map(rows.filter(([, state]) => state !== null))
}

/** Whether two JSON values are equal. */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  const keys = Object.keys(a)
  return (
    Array.isArray(a) === Array.isArray(b) &&
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isSame(Reflect.get(a, key), Reflect.get(b, key)))
  )
}
