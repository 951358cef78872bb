import type { LogStore } from '../contract.ts'
import type { InboxLimits } from '../inbox-store.ts'

/** A runner of tests, such as vitest, jest, mocha or `node:test`. Each test takes up to some seconds in a store on a disk. */
export interface TestRunner {
  /** Declares a group of tests. */
  describe(name: string, tests: () => void): unknown
  /** Declares a test. */
  it(name: string, test: () => Promise<void>): unknown
}

/** A fresh log under test. */
export interface LogUnderTest {
  /** Opens the log once more, as another process does. `owner` is the name in the errors of others. */
  connect(owner: string): Promise<LogStore>
  /**
   * Frees the claims of an open log that does not notice: as if its process was killed, or suspended while its locks were
   * lost. The open log may still be called.
   */
  loseClaims(store: LogStore): Promise<void>
  /** Closes what is open, and removes the log. */
  remove(): Promise<void>
}

/** Settings of a fresh log. */
interface FreshLogOptions {
  /** Unix time in ms, for `recorded`. It is to be believed at once: see `clocksOf`. */
  readonly clock: () => number
  /** Limits of the inbox. Default: those of `inboxLimits`. */
  readonly inbox?: InboxLimits
}

/** Opens a fresh log. */
export type OpenFreshLog = (options: FreshLogOptions) => Promise<LogUnderTest>

/** A fresh log, opened once, and removed at the end of the test. */
export type Open = (
  clock?: () => number,
  inbox?: InboxLimits,
) => Promise<Pick<LogUnderTest, 'connect' | 'loseClaims'> & { readonly log: LogStore }>

/** What an area of the suite is given. */
export interface Area extends TestRunner {
  readonly open: Open
  readonly isExact: boolean
}
