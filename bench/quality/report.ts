/** A share or a count that was measured over a half of a set. */
export interface Figure {
  readonly name: string
  /** A share from 0 to 1, or the mean reciprocal rank. */
  readonly value: number
  /** What the share is of. */
  readonly of: number
  /** The target of the issue, where there is one. */
  readonly target?: { readonly atLeast: number } | { readonly atMost: number }
}

/** An item that was not right, for `--misses`. */
export interface Miss {
  readonly id: string
  readonly detail: string
}

/** What one set measured over one half. */
export interface Measured {
  readonly figures: readonly Figure[]
  readonly misses: readonly Miss[]
}

/** The figure of a share; 0 of nothing. */
export function share(name: string, count: number, of: number, target?: Figure['target']): Figure {
  return { name, value: of === 0 ? 0 : count / of, of, ...(target !== undefined && { target }) }
}

/** Whether a figure reaches its target; undefined without a target, or where nothing was measured. */
export function reaches({ value, of, target }: Figure): boolean | undefined {
  if (target === undefined || of === 0) return undefined
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
}
