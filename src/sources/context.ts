import type { SchedulerLike } from 'rxjs'
import type { Backoff } from '../protocol/backoff.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { Warning } from '../protocol/problem.ts'
import type { Transport } from '../transport/transport.ts'

/** What the library did on the way, for logs and metrics. Nothing here needs an answer. */
export type Diagnostic =
  /** A single request failed and is sent again after `delay` ms. */
  | {
      readonly kind: 'retry'
      readonly method: string
      readonly path: string
      readonly attempt: number
      readonly delay: number
      readonly error: unknown
    }
  /** A stream or a poll is taken up again after `delay` ms: after a failure, its `cause`, or after a clean close. */
  | {
      readonly kind: 'reconnect'
      readonly source: string
      readonly attempt: number
      readonly delay: number
      readonly cause: unknown
    }
  /** A copy of a fact that had been told was dropped. */
  | { readonly kind: 'duplicate'; readonly event: ResearchEvent }
  /** The service remarked on an answer (§2.4). */
  | { readonly kind: 'warnings'; readonly source: string; readonly warnings: readonly Warning[] }
  /**
   * `ahead` events of `source` wait within an operator that takes in more than it passes on. It cannot be held back, so
   * memory grows with the stream. Where several sources are merged, one of them stands for all. docs/architecture.md,
   * "Backpressure", says what to write instead.
   */
  | { readonly kind: 'backpressure'; readonly source: string; readonly ahead: number }
  /** What a webhook points to could not be fetched. `event` is the webhook's own event, which is emitted in its place. */
  | { readonly kind: 'expansion'; readonly error: unknown; readonly event: ResearchEvent }

/** What every source is made of: the transport, and how time passes. */
export interface Context {
  readonly transport: Transport
  readonly backoff: Required<Backoff>
  readonly scheduler: SchedulerLike
  readonly random: () => number
  /** How long a stream that is known to be incomplete is resumed without a new event, in ms. */
  readonly patience: number
  readonly report: (diagnostic: Diagnostic) => void
}
