import type { ResearchEventData } from '../../protocol/event.ts'
import type { RuleState } from './state.ts'

/** The types of the events that rules append. */
export type AlertOutputType =
  `alert.${'pending' | 'inactive' | 'firing' | 'resolved' | 'unknown' | 'known' | 'late'}`

/** An event that rules append. */
export type AlertOutput = {
  [Type in AlertOutputType]: {
    readonly type: Type
    readonly source: string
    readonly data: ResearchEventData[Type]
  }
}[AlertOutputType]

/** The environment of rules: the context of a process over a log, or one in memory. */
export interface RuleContext {
  readonly key: string
  /** Whether all events up to the watermark have come. */
  readonly complete: boolean
  now(clock?: 'recorded' | 'event'): number
  set(state: RuleState | null): void
  timer(
    name: string,
    due: number,
    options?: { readonly clock?: 'recorded' | 'event'; readonly data?: unknown },
  ): void
  cancel(name: string): void
  append(event: AlertOutput): void
}

/** The name of the timer of a state's next deadline. */
export const TIMER = 'due'

/** How long a state waits before it looks again whether all events have come, in ms. */
export const INCOMPLETE_INTERVAL = 60_000

/** The name of the timer that reports the late events of a state. */
export const LATE_TIMER = 'late'
