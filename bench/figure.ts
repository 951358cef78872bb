/** The target of a figure. */
export type Target = { readonly atLeast: number } | { readonly atMost: number }

/** One measured figure. */
export interface Result {
  readonly name: string
  /** The result: ours divided by the other side's, a size, or a share. */
  readonly ratio: number
  /** Absent from a fact, which has no target. */
  readonly target?: Target
  /** Whether it meets its target; true for a fact. */
  readonly ok: boolean
  /** Both sides in their own unit, for information: they differ between machines. */
  readonly [detail: string]: unknown
}

/** What a file of figures measures is not installed here. */
export class SkippedError extends Error {}

/** The message of a figure's process: its results, why it was skipped, or why it failed. */
export type Report =
  | { readonly results: readonly Result[] }
  | { readonly skipped: string }
  | { readonly failure: string }

/** Whether a message is a report, by its shape only. */
export function isReport(message: unknown): message is Report {
  const report: { readonly results?: unknown; readonly skipped?: unknown; readonly failure?: unknown } =
    Object(message)
  const { results, skipped, failure } = report
  const isWithout = typeof failure === 'string' || typeof skipped === 'string'
  return isWithout || (Array.isArray(results) && results.every(isResult))
}

function isResult(value: unknown): value is Result {
  const { name, ratio }: { readonly name?: unknown; readonly ratio?: unknown } = Object(value)
  return typeof name === 'string' && typeof ratio === 'number'
}

/** Measures the figures of one file, in a process of its own. The folder for its files is empty, and is removed at the end. */
export type Measure = (folder: string) => Promise<readonly Result[]>

/** A figure as it is printed. Without a target it is a fact. */
export function result(
  name: string,
  ratio: number,
  target: Target | undefined,
  details: Readonly<Record<string, unknown>> = {},
): Result {
  if (!Number.isFinite(ratio)) throw new Error(`${name} came to ${ratio}`)
  const printed = rounded(ratio)
  if (target === undefined) return { name, ratio: printed, ok: true, ...details }
  const ok = 'atLeast' in target ? printed >= target.atLeast : printed <= target.atMost
  return { name, ratio: printed, target, ok, ...details }
}

/** Three significant digits, or all digits before the decimal point. */
export function rounded(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))
}
