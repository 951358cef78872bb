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

/** Measures the figures of one file, in a process that does nothing else. */
export type Measure = () => Promise<readonly Result[]>

/** Sets a figure beside its target. */
export function result(
  name: string,
  ratio: number,
  target: Target,
  details: Readonly<Record<string, unknown>> = {},
): Result {
  const ok = 'atLeast' in target ? ratio >= target.atLeast : ratio <= target.atMost
  return { name, ratio: rounded(ratio), target, ok, ...details }
}

/** Three digits that count, or all before the point. */
export function rounded(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))
}
