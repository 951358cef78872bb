import type { AlertFiring, AlertLate, AlertResolved, AlertUnknown } from '../../protocol/alert.ts'
import type { RuleState } from './state.ts'

/** An event that rules append. */
export type AlertOutput =
  | { readonly type: 'alert.firing'; readonly source: string; readonly data: AlertFiring }
  | { readonly type: 'alert.resolved'; readonly source: string; readonly data: AlertResolved }
  | { readonly type: 'alert.unknown'; readonly source: string; readonly data: AlertUnknown }
  | { readonly type: 'alert.late'; readonly source: string; readonly data: AlertLate }

/** The environment of rules: the context of a process over a log, or one in memory. */
export interface RuleContext {
  readonly key: string
  now(clock?: 'recorded' | 'event'): number
  set(state: RuleState | null): void
  timer(name: string, due: number, options?: { readonly clock?: 'recorded' | 'event' }): void
  cancel(name: string): void
  append(event: AlertOutput): void
}

/** The name of the one timer of a state. */
export const TIMER = 'due'
