import type { ResearchEventType } from '../protocol/event.ts'

/** The rights of a subject. Anything that the grant does not name is denied. */
export interface Grant {
  /**
   * The subject, of up to 256 characters. Limits count by it.
   *
   * The id of a user, for instance. Its own `/subjects/SUB` is always covered.
   */
  readonly sub: string
  /** Names of views. An unknown one is an `ArgumentError`. Default: none. */
  readonly views?: readonly string[]
  /** Resources whose rows and entries are visible. A `*` at the end makes a prefix, and a group covers its runs. Default: none. */
  readonly sources?: readonly string[]
  /**
   * Types of the entries that `/log` shows. Default: none.
   *
   * Views do not need it.
   */
  readonly types?: readonly ResearchEventType[]
  /** Up to 64 fields that are left out at any depth, of up to 16 names with dots between them, such as `output.basis`. Default: none. */
  readonly omit?: readonly string[]
  /**
   * Requests to the service: `{ search: { perMinute }, addRuns: { groups, processors, perMinute } }`. `*` is any group or processor. Defaults:
   * none, 30 searches, 100 runs.
   */
  readonly requests?: GrantedRequests
  /** How long the token is valid, in ms, from a second to a day. Default 10 minutes. */
  readonly timeToLive?: number
}

/** Requests that a subject may make. Each gateway counts for itself. */
export interface GrantedRequests {
  /** Searches. Default: none. */
  readonly search?: {
    /** Maximum number of searches a minute. Default 30. */
    readonly perMinute?: number
  }
  /**
   * An input may have the fields `input`, `processor`, `metadata`, `source_policy`, `advanced_settings` and `task_spec`. Other fields would
   * let a subject make the service call other servers, or read the questions of another subject. Default: none.
   */
  readonly addRuns?: {
    /** Ids of task groups; `*` for all of them. */
    readonly groups: readonly string[]
    /** Maximum number of runs a minute, not of requests. Default 100. */
    readonly perMinute?: number
    /** Processors that may be named; `*` for all. Default: none, and the service's own default is used. */
    readonly processors?: readonly string[]
  }
}

/** Which grants to revoke: all of a subject that were made until now, or one, by its token, its ticket or the id of either. */
export type Revocation = { readonly sub: string } | { readonly grant: string }
