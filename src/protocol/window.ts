/** The result of a window, of a stage of a definition in `rivulet/streams`. */
export interface WindowResult {
  /** The name of the stage. */
  readonly stage: string
  readonly key: string
  /** The beginning of the window, in RFC 3339. It belongs to the window. */
  readonly start: string
  /** The end of the window, in RFC 3339. It belongs to the next one. */
  readonly end: string
  /** Whether all events of the window had come. False if a stream was waited for in vain, as in `log.tick`. */
  readonly complete: boolean
  /** The value of each aggregate, by its name. */
  readonly values: Readonly<Record<string, unknown>>
  /** The number of events without a time of their own: each is in the window in which it came. Left out for 0. */
  readonly byArrival?: number
}

/** Events that came too late for their windows, or that have no place in them. At most one in a minute for each stage, key and window. */
export interface WindowDropped {
  /** The name of the stage. */
  readonly stage: string
  readonly key: string
  /** The beginning of the first window, in RFC 3339. */
  readonly start: string
  /** The end of the last window, in RFC 3339. */
  readonly end: string
  /** `late`: the window had ended. `whole_day`: the event happened at some time of a day, and the windows are not days. */
  readonly reason: 'late' | 'whole_day'
  /** Number of events. */
  readonly count: number
}
