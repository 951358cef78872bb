/** A fact that was handled: the identity of its event, and what the copies that were handled told of it, as bits. */
export interface HandledFact {
  readonly id: string
  readonly source: string
  /** See `completeness` of the protocol. */
  readonly parts: number
}

/** What a pipeline has behind it. */
export interface CheckpointState {
  /** The cursor behind which each stream goes on, by the stream's name. */
  readonly positions: ReadonlyMap<string, string>
  /**
   * Facts handled lately, which other streams and webhooks may still tell again. Oldest first; a fact whose copies were
   * handled apart may stand there several times, and what they told adds up.
   */
  readonly handled: Iterable<HandledFact>
}

/** A step forward. */
export interface CheckpointChanges {
  readonly positions: ReadonlyMap<string, string>
  readonly handled: readonly HandledFact[]
}

/**
 * Where a checkpoint is kept. One pipeline at a time: a store that another process holds is refused with a
 * `CheckpointInUseError`.
 */
export interface CheckpointStore {
  /**
   * How many handled facts it remembers, at the most: a pipeline that goes on with it remembers as many. Up to 100,000,000;
   * default 100,000.
   */
  readonly maxHandled?: number
  /** What was saved last. Rejects, and changes nothing, where it cannot be read. */
  load(): CheckpointState | PromiseLike<CheckpointState>
  /** Saves all of the step or nothing of it. Called again only when the call before has settled. */
  save(changes: CheckpointChanges): void | PromiseLike<void>
  /**
   * The error for a position that it gave out and that cannot be read as one: it says where the position stands, and what
   * to do. Nothing is changed. Default a `CheckpointError` that names the stream.
   */
  unreadable?(stream: string): Error
  /** Gives the store up for the next process. */
  close(): void | PromiseLike<void>
}
