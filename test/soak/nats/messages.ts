/** Settings of a worker, in the environment of its process: a key must not be on a command line. */
export interface WorkerSettings {
  readonly servers: string
  /** The name of the log. */
  readonly log: string
  readonly lease: number
  readonly owner: string
  readonly baseUrl: string
  readonly apiKey: string
  readonly webhookSecret: string
  readonly groups: readonly string[]
  readonly monitors: readonly string[]
  /** The folder of the effects' databases. */
  readonly folder: string
  /** The port for webhooks. */
  readonly port: number
  /** Whether the groups' runs are recorded with their outputs. */
  readonly includeOutput: boolean
  /** How old the entries may become that no reader needs, in ms. */
  readonly maxAge: number
  /** How long the slowest calls of the handler take that has each effect at least once, in ms. */
  readonly slowest: number
  /** One of so many of these calls is slow. */
  readonly slowEvery: number
}

/** What a worker sends. */
export type WorkerReport =
  /** Its jobs are started. */
  | { readonly what: 'started' }
  /** An append was acknowledged to it. */
  | { readonly what: 'appended'; readonly entries: number; readonly duplicates: number }
  /** A job has failed, and is started again; or the log could not be opened. */
  | { readonly what: 'failed'; readonly error: string; readonly message: string }

/** The error of a source that the service has not. */
export const SOURCE_FAILED = 'SourceFailed'

/** The exit code after a failure that was reported. */
export const REPORTED = 2

/** A write of the log. */
export type Write = 'append' | 'commit'

/** Makes a worker kill or suspend itself so many ms after its next write of this kind has begun. */
export interface Strike {
  readonly within: Write
  readonly delay: number
  readonly signal: 'SIGKILL' | 'SIGSTOP'
}

/** What a worker is sent. */
export interface StrikeOrder extends Strike {
  /** It counts until then, in Unix ms. */
  readonly until: number
}
