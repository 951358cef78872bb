import { INCOMPLETE_INTERVAL, TIMER } from './context.ts'
import type { RuleContext } from './context.ts'
import { alertDeadline, KeyAlert } from './key-alert.ts'
import type { PreparedRule } from './prepared-rule.ts'
import type { MatchedEvent, RuleState } from './state.ts'

/** Events that say whether the reports of a source can be known. */
export const EVIDENCE = ['source.live', 'source.lost', 'stream.gap', 'monitor.cancelled'] as const

/** The type of such an event. */
export type Evidence = (typeof EVIDENCE)[number]

/** How long reports of a cancelled monitor, which may come late, are ignored, in ms. */
const CANCELLED_KEPT = 7 * 24 * 3_600_000

/** Whether a rule about absence watches a source. Reports of other sources are ignored. */
export function isWatched({ absence, rule }: PreparedRule, source: string, isReport: boolean): boolean {
  if (absence === undefined) return false
  if (absence.of !== undefined) return absence.of.has(source)
  if (isReport) return true
  // That a source is live does not say which events it has.
  for (const [root, type] of ROOTS) {
    if (!source.startsWith(root)) continue
    for (const each of rule.types ?? []) if (each.startsWith(type)) return true
  }
  return false
}

/** Which events come from a kind of source. */
const ROOTS = [
  ['/v1/monitors/', 'monitor.'],
  ['/v1/tasks/groups/', 'task_group.'],
] as const

/**
 * Whether a source reports in time. It is absent only if the watermark shows that its reports have come: while nothing is recorded, time
 * stands still. Evidence counts when it is recorded.
 */
export class AbsenceWatch {
  readonly #prepared: PreparedRule
  readonly #within: number
  /** When the last of the entries that were deleted unread was recorded; -Infinity for none. */
  readonly #gap: number
  readonly #state: RuleState
  readonly #context: RuleContext
  readonly #alert: KeyAlert

  constructor(
    prepared: PreparedRule,
    { within, gap }: { readonly within: number; readonly gap: number },
    state: RuleState,
    context: RuleContext,
  ) {
    this.#prepared = prepared
    this.#within = within
    this.#gap = gap
    this.#state = state
    this.#context = context
    this.#alert = new KeyAlert(prepared.rule.name, state, context)
  }

  /** The source has reported. */
  report({ time, cause, annotationParts }: MatchedEvent): void {
    const state = this.#state
    if (state.sourceStatus !== 'cancelled') {
      if (state.lastReport === undefined || time >= state.lastReport) {
        state.lastReport = time
        state.causes = [cause]
        if (annotationParts === undefined) delete state.annotationParts
        else state.annotationParts = annotationParts
      }
      const absent = time + this.#within
      // A report from long ago does not say that the source reports again.
      if (absent + this.#prepared.rule.lateness > this.#context.now('event')) {
        if (state.sourceStatus === undefined) {
          delete state.undecidedUntil
          this.#alert.known()
        }
        this.#step(Math.max(time, state.trueSince ?? time), false)
      }
      this.#waitUntil(absent)
    }
    this.#store()
  }

  /** Something is known about the source. */
  evidence(type: Evidence): void {
    const state = this.#state
    const now = this.#context.now()
    const within = this.#within
    delete state.undecidedUntil
    if (type === 'monitor.cancelled') return this.#cancelled(now)
    if (type === 'source.live') {
      if (state.sourceStatus === 'cancelled') {
        delete state.sourceStatus
        delete state.keptUntil
      }
      if (state.absentAt === undefined) state.absentAt = now + within
      else if (state.sourceStatus === 'lost') this.#waitUntil(now)
      delete state.sourceStatus
      if (state.unknown === 'lost') this.#alert.known()
    } else if (
      state.sourceStatus !== 'cancelled' &&
      (state.absentAt !== undefined || state.sourceStatus === 'lost')
    ) {
      if (type === 'source.lost') {
        state.sourceStatus = 'lost'
        this.#alert.unknown(this.#prepared.rule, 'lost', now)
      } else {
        this.#alert.unknown(this.#prepared.rule, 'gap', now)
        this.#waitUntil(now + within)
      }
    }
    this.#store()
  }

  timer(due: number): void {
    const state = this.#state
    delete state.due
    const { lateness } = this.#prepared.rule
    for (;;) {
      const deadline = this.#deadline()
      if (deadline === undefined || deadline > due - lateness) break
      this.#at(deadline)
    }
    this.#store(due)
  }

  #at(deadline: number): void {
    const state = this.#state
    const { rule } = this.#prepared
    if (state.keptUntil !== undefined) {
      delete state.keptUntil
      delete state.sourceStatus
      return
    }
    if (state.undecidedUntil !== undefined) {
      if (this.#context.complete) delete state.undecidedUntil
      else state.undecidedUntil = deadline + INCOMPLETE_INTERVAL
      return
    }
    if (state.falseSince !== undefined && (state.sourceStatus !== undefined || deadline !== state.absentAt))
      return this.#step(deadline, false)
    // Its last reports may be among the deleted entries.
    if (state.absentAt !== undefined && state.absentAt - this.#within < this.#gap) {
      this.#alert.unknown(rule, 'gap', this.#gap)
      return this.#waitUntil(this.#gap + this.#within)
    }
    if (!this.#context.complete) {
      state.undecidedUntil = deadline + INCOMPLETE_INTERVAL
      return this.#alert.unknown(rule, 'incomplete', deadline)
    }
    this.#alert.known()
    this.#step(deadline, true)
  }

  /** The source is not absent before this time. */
  #waitUntil(time: number): void {
    this.#state.absentAt = Math.max(this.#state.absentAt ?? time, time)
  }

  #step(time: number, level: boolean): void {
    const { rule } = this.#prepared
    const change = this.#alert.step(time, level, rule)
    if (change !== undefined) this.#alert.change(change, rule, this.#silence(time))
  }

  #cancelled(now: number): void {
    const state = this.#state
    this.#alert.known()
    if (state.fired === undefined) this.#alert.end()
    else this.#alert.change('resolved', this.#prepared.rule, this.#silence(now), { reason: 'cancelled' })
    for (const name of ['absentAt', 'lastReport', 'causes', 'annotationParts'] as const) delete state[name]
    state.sourceStatus = 'cancelled'
    state.keptUntil = now + CANCELLED_KEPT
    this.#store()
  }

  /** How long the source has been silent, or was, in seconds. */
  #silence(now: number): number {
    const { trueSince = now, falseSince = now } = this.#state
    return (falseSince - trueSince + this.#within) / 1_000
  }

  #deadline(): number | undefined {
    const state = this.#state
    if (state.keptUntil !== undefined) return state.keptUntil
    if (state.undecidedUntil !== undefined) return state.undecidedUntil
    const { trueSince, falseSince, absentAt, sourceStatus } = state
    const isAbsent = trueSince !== undefined && falseSince === undefined
    const next =
      sourceStatus === undefined || falseSince !== undefined
        ? alertDeadline(state, this.#prepared.rule)
        : undefined
    if (isAbsent || sourceStatus !== undefined || absentAt === undefined) return next
    return Math.min(absentAt, next ?? Infinity)
  }

  #store(fired = -Infinity): void {
    const state = this.#state
    const context = this.#context
    this.#alert.flush()
    if (state.absentAt === undefined && state.sourceStatus === undefined && state.trueSince === undefined) {
      if (state.due !== undefined) context.cancel(TIMER)
      return context.set(null)
    }
    const deadline = this.#deadline()
    if (deadline !== undefined) {
      const due = Math.max(deadline + this.#prepared.rule.lateness, fired + 1)
      if (state.due === undefined || due < state.due) {
        state.due = due
        context.timer(TIMER, due, { clock: 'event' })
      }
    }
    context.set(state)
  }
}
