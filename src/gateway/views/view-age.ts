import { checkInteger, checkOptions } from '../../protocol/check.ts'

/** Settings of a ready-made view. */
export interface ViewAge {
  /** How long a row is kept after its last change, in ms between recordings. Each view says its default. */
  readonly timeToLive?: number
}

/** A day in ms. */
export const DAY = 86_400_000

/** The `timeToLive` of these options, or the default. Throws an ArgumentError for an invalid one. */
export function ageOf(options: ViewAge, fallback: number): number {
  checkOptions('options', options, ['timeToLive'])
  const { timeToLive = fallback } = options
  checkInteger('timeToLive', timeToLive, 1)
  return timeToLive
}
