/** What runs over the log, each in a process of its own. */
export const ROLES = ['receiver', 'recorder', 'billing', 'ledger', 'board'] as const

/** What a process does: stores webhooks, records, consumes at least once, consumes exactly once, or keeps state and timers. */
export type Role = (typeof ROLES)[number]

/** Settings of a role, in the environment of its process: a key must not be on a command line. */
export interface RoleSettings {
  readonly baseUrl: string
  readonly apiKey: string
  readonly webhookSecret: string
  readonly group: string
  readonly monitor: string
  /** The log's file. */
  readonly log: string
  /** The folder of the effects' databases. */
  readonly folder: string
  /** The port for webhooks. */
  readonly port: number
  readonly concurrency: number
  /** How long the slowest calls of the handler take that has each effect at least once, in ms. */
  readonly slowest: number
  /** Whether the group's runs are recorded with their outputs. */
  readonly includeOutput: boolean
}

/** A report of a role's process, sent repeatedly while it runs. */
export interface RoleReport {
  /** Maximum resident memory. */
  readonly rssMb: number
  /** Whether it has lost the locks of its claims. */
  readonly hasLostLocks: boolean
}

/** What a transaction does, as its statements show: see `strike.ts`. */
export const TRANSACTIONS = ['append', 'inbox', 'acknowledge', 'effect', 'timer', 'trim'] as const

/** A kind of transaction. */
export type TransactionKind = (typeof TRANSACTIONS)[number]

/** Makes a process kill itself at the next transaction of this kind, right before or right after its commit. */
export interface StrikeOrder {
  readonly within: TransactionKind
  readonly at: 'before' | 'after'
}

/** What a role's process is sent. */
export type RoleOrder = StrikeOrder | { readonly loseLocks: true }
