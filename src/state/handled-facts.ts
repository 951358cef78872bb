import { WEBHOOK_HORIZON } from '../protocol/limits.ts'

/** How long handled facts are remembered. */
export interface HandledFactsLimits {
  /**
   * Handled facts that are remembered, at the most; the oldest are forgotten first, and one whose copies were handled apart
   * counts as often. Up to 100,000,000; default 100,000.
   *
   * A fact that is forgotten may be handled again after a crash: where an event is in work while more than this many
   * others are handled, and where another transport tells a fact so late.
   */
  readonly maxHandled?: number
  /** How long a handled fact is remembered, in ms. Default 48 hours, for as long as the service retries (§6.1). */
  readonly remember?: number
}

/** Default of {@link HandledFactsLimits.maxHandled}. */
export const MAX_HANDLED = 100_000
/** Bound of {@link HandledFactsLimits.maxHandled}: as much as `dedupe` and `mergeWebhooks` can remember. */
export const MOST_HANDLED = 100_000_000
/** Default of {@link HandledFactsLimits.remember}, in ms. */
export const REMEMBER = WEBHOOK_HORIZON
