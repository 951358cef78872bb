/** What the process of a soak keeps of each key. */
export interface Totals {
  readonly entries: number
  /** Without later revisions. */
  readonly events: number
  /** Of all its entries, in their order. */
  readonly hash: number
}

/** With which a hash begins. */
export const HASH_BASIS = 0x811c9dc5

/** After how many entries of a key the process appends what it has. */
export const OUTPUT_EVERY = 5

/** The key of an entry: each monitor has its own, runs share some dozens. */
export function keyOfTotals({ source }: { readonly source: string }): string {
  return source.startsWith('/v1/monitors/') ? source : `runs ${source.slice(-2)}`
}
