/** Settings of a ready-made view. */
export interface ViewAge {
  /** Removes a row that was not changed for so long, in ms between recordings. */
  readonly timeToLive?: number
}

/** A day in ms. */
export const DAY = 86_400_000
