import { LogPositionError } from '../../log/errors.ts'
import type { PositionProblem } from '../../log/errors.ts'
import type { Position } from '../../log/store/contract.ts'
import type { GapReason } from '../../protocol/live.ts'
import type { Access } from '../access/access.ts'
import type { FollowedView } from '../feed/followed-view.ts'
import type { Scope } from '../feed/view-rows.ts'
import { bytesOf, frameText } from '../feed/frames.ts'
import { Segment } from '../feed/segment.ts'

/** Maximum number of changes in a frame, and about its length in characters. */
const MAX_CHANGES = 500
const MAX_LENGTH = 64 * 1024

const GAPS: Readonly<Record<PositionProblem, GapReason>> = {
  unknown: 'epoch',
  beyond: 'epoch',
  diverged: 'epoch',
  rebuilt: 'rebuilt',
  forgotten: 'retention',
}

/** The next step of a subscription. */
type Phase =
  /** It sends the rows after a key. `since` is the position of the first part. */
  | { readonly at: 'rows'; readonly after?: string; readonly since?: Position }
  /** It sends the changes that came while the rows were sent, up to a position. */
  | { readonly at: 'catch-up'; readonly position: Position; readonly until: Position }
  | { readonly at: 'changes'; readonly position: Position }

/** Frames; `again` if there are none now, but may be more at once; undefined if the client has all. */
export type NextFrames = Uint8Array | 'again' | undefined

/** One view of a connection: a position that moves when the connection asks for more. */
export class Subscription {
  readonly scope: Scope
  /** The position that the client has, with all frames so far; undefined before its first snapshot is complete. */
  position: Position | undefined
  readonly #view: FollowedView
  readonly #access: Access
  #phase: Phase
  /** The position in the last frame. */
  #sent: Position | undefined
  #isCurrent = false
  /** The end of the view when the client had nearly got there. */
  #end: Position | undefined
  /** A gap that comes before the next snapshot. */
  #gap: GapReason | undefined

  constructor(view: FollowedView, scope: Scope, access: Access, after: Position | undefined) {
    this.#view = view
    this.scope = scope
    this.#access = access
    this.position = after
    this.#sent = after
    this.#phase = after === undefined ? { at: 'rows' } : { at: 'changes', position: after }
  }

  get view(): FollowedView {
    return this.#view
  }

  /** The next frames; a promise if they are not in memory. If the position is refused, a gap and a snapshot follow. */
  next(): NextFrames | Promise<NextFrames> {
    if (this.#phase.at === 'changes') {
      const { position } = this.#phase
      const { feed } = this.#view
      const segment = this.#isCurrent || position !== this.#end ? feed.peek(position) : undefined
      if (segment !== undefined) return this.#take(segment) ?? 'again'
      if (this.#isCurrent && feed.isLatest(position)) return undefined
    }
    return this.#read()
  }

  /** A frame with the position; empty if it has not moved since the last one. */
  positionFrame(): string {
    if (this.position === undefined || this.position === this.#sent) return ''
    this.#sent = this.position
    return frameText('position', { view: this.scope.address, position: this.position })
  }

  async #read(): Promise<NextFrames> {
    try {
      const { at } = this.#phase
      if (at === 'changes') return await this.#changes(this.#phase.position)
      return at === 'rows' ? await this.#rows(this.#phase) : await this.#catchUp(this.#phase)
    } catch (error) {
      if (!(error instanceof LogPositionError)) throw error
      this.#gap = GAPS[error.reason]
      this.#phase = { at: 'rows' }
      this.position = undefined
      return 'again'
    }
  }

  async #changes(position: Position): Promise<NextFrames> {
    const { feed } = this.#view
    if (this.#isCurrent || position !== this.#end) {
      const segment = await feed.read(position)
      if (segment !== undefined) return this.#take(segment) ?? 'again'
      if (this.#isCurrent) return undefined
      if (this.#end === undefined) {
        // The feed may not have read yet the entries that the view has.
        this.#end = await feed.latest()
        if (position !== this.#end) return 'again'
      }
    }
    this.#isCurrent = true
    return bytesOf(frameText('current', { view: this.scope.address }))
  }

  #take(segment: Segment): Uint8Array | undefined {
    const { to } = segment
    const frames = segment.framesFor(this.scope, this.#access)
    this.position = to
    if (frames !== undefined) this.#sent = to
    if (this.#phase.at === 'catch-up') {
      const { until } = this.#phase
      this.#phase = to === until ? { at: 'changes', position: to } : { at: 'catch-up', position: to, until }
    } else this.#phase = { at: 'changes', position: to }
    return frames
  }

  /** A part of the rows. Changes that happen meanwhile come after them, from the position of the first part on. */
  async #rows({ after, since }: Phase & { at: 'rows' }): Promise<Uint8Array> {
    const { feed, parts } = this.#view
    const { address } = this.scope
    // A shared part may be of the time before the gap.
    const part = await parts.read({ scope: this.scope, after, since }, this.#gap !== undefined)
    const { position, last } = part
    let gaps = ''
    if (since === undefined) {
      if (this.#gap !== undefined) gaps += frameText('gap', { view: address, reason: this.#gap })
      this.#gap = undefined
      if (part.hasMissed) gaps += frameText('gap', { view: address, reason: 'missed' })
    }
    if (last !== undefined) this.#phase = { at: 'rows', after: last, since: position }
    else {
      // Segments in memory may be older than the rows that were just read, and a row must not go back.
      const until = await feed.latest()
      this.position = position
      this.#sent = position
      this.#phase = position === until ? { at: 'changes', position } : { at: 'catch-up', position, until }
    }
    const frame = part.frameFor(this.#access)
    return gaps === '' ? frame : joined(bytesOf(gaps), frame)
  }

  /** Changes from the store itself, which are not older than the rows. */
  async #catchUp({ position, until }: Phase & { at: 'catch-up' }): Promise<Uint8Array | 'again'> {
    const { states, reader } = this.#view
    const limits = { limit: MAX_CHANGES, maxLength: MAX_LENGTH, until }
    const page = await states.changes(reader, position, limits)
    return this.#take(new Segment(this.#view, page.position, page.changes)) ?? 'again'
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.byteLength + second.byteLength)
  bytes.set(first)
  bytes.set(second, first.byteLength)
  return bytes
}
