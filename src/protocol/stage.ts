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

/** The result of a join, of a stage of a definition in `rivulet/streams`. */
export interface JoinResult {
  /** The name of the stage. */
  readonly stage: string
  readonly key: string
  /** The event time of the pair, in RFC 3339: the later one of two events, that of the event for a table. */
  readonly time: string
  readonly left: unknown
  /** Null if there is none. */
  readonly right: unknown
  /** False if `right` may be null because a stream was waited for in vain, as in `log.tick`. */
  readonly complete: boolean
}

/**
 * Events that a stage has left out: they came too late, or have no place in its windows. At most one in a minute for each stage, key and
 * window.
 */
export interface StageDropped {
  /** The name of the stage. */
  readonly stage: string
  readonly key: string
  /** The beginning of the first window, in RFC 3339; of a join, the time of the first event. */
  readonly start: string
  /** The end of the last window, in RFC 3339; of a join, the time of the last event. */
  readonly end: string
  /** `late`: the window had ended, or the watermark had passed the event that was to be joined. `whole_day`: the event happened at some time of a day, and the windows are not days. */
  readonly reason: 'late' | 'whole_day'
  /** Number of events. */
  readonly count: number
}
