/** The partitions of a log's sources. They never change. */
export interface Partitions {
  /** Number of partitions; 1 if the sources are not divided. */
  readonly count: number
  /** The partition of a source, from 0. It depends on nothing but the source and the count. */
  of(source: string): number
}

/** The partitions of a log whose sources are not divided. */
export const UNDIVIDED: Partitions = { count: 1, of: () => 0 }

/**
 * Divides work among the open logs that take part in it.
 *
 * It only says which member should try. The claims make it safe: for a moment, two members may count the same part as theirs, or none.
 */
export interface SharingStore {
  partitions(): Promise<Partitions>
  /**
   * Makes this open log a member of a group, which divides so many parts among its members, until the signal is aborted. Yields the
   * numbers of its own parts at once, and again whenever they have changed. A part of a member that no longer lives is that of
   * another one soon after its lease has run out. Completes when the signal is aborted.
   *
   * If sources are not divided, work need not be divided either: each member may have every part then, and the claims decide.
   *
   * Throws a `LogInUseError` if this open log is a member already, and a `LogClosedError` once it is closed.
   */
  share(group: string, parts: number, signal: AbortSignal): AsyncIterable<ReadonlySet<number>>
}
