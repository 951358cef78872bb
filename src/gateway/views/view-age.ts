/** Settings of a ready-made view. */
export interface ViewAge {
  /** How long a row is kept after its last change, in ms between recordings. Each view says its default. */
  readonly timeToLive?: number
}

/** A day in ms. */
export const DAY = 86_400_000
