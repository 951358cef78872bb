/** What a figure has to reach. */
export type Target = { readonly atLeast: number } | { readonly atMost: number }

/** One figure, measured. */
export interface Result {
  readonly name: string
  /** What counts: ours by the other side's, a size, or a share. */
  readonly ratio: number
  readonly target: Target
  readonly ok: boolean
  /** Both sides in their own unit, for orientation: they change from machine to machine. */
  readonly [detail: string]: unknown
}

/** What the process of one file of figures tells: what it measured, or why it could not. */
export type Report = { readonly results: readonly Result[] } | { readonly failure: string }

/** Whether a message is a report: by its shape, since the sender is of this folder too. */
export function isReport(message: unknown): message is Report {
  const { results, failure }: { readonly results?: unknown; readonly failure?: unknown } = Object(message)
  return typeof failure === 'string' || (Array.isArray(results) && results.every(isResult))
}

function isResult(value: unknown): value is Result {
  const { name, ratio }: { readonly name?: unknown; readonly ratio?: unknown } = Object(value)
  return typeof name === 'string' && typeof ratio === 'number'
}

/**
 * Measures the figures of one file, in a process that does nothing else. What it writes goes into the folder, which is
 * empty and is removed when the process ends.
 */
export type Measure = (folder: string) => Promise<readonly Result[]>

/** Sets a figure, as it is printed, beside its target. */
export function result(
  name: string,
  ratio: number,
  target: Target,
  details: Readonly<Record<string, unknown>> = {},
): Result {
  if (!Number.isFinite(ratio)) throw new Error(`${name} came to ${ratio}`)
  const printed = rounded(ratio)
  const ok = 'atLeast' in target ? printed >= target.atLeast : printed <= target.atMost
  return { name, ratio: printed, target, ok, ...details }
}

/** Three digits that count, or all before the point. */
export function rounded(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))
}
