/** How many requests that create something a service accepts; beyond the interface document. */
export interface QuotaLimit {
  readonly requests: number
  /** In ms. */
  readonly window: number
}

const MINUTE = 60_000

/** The known quotas. Each counts the POSTs that create something, of one key. */
export const QUOTAS = {
  search: { requests: 600, window: MINUTE },
  extract: { requests: 600, window: MINUTE },
  /** Runs, alone or added to a group: a request counts once, with however many runs. */
  runs: { requests: 2_000, window: MINUTE },
  /** Chat completions and responses. */
  chat: { requests: 300, window: MINUTE },
  findAll: { requests: 300, window: 60 * MINUTE },
  monitors: { requests: 300, window: MINUTE },
} as const satisfies Readonly<Record<string, QuotaLimit>>

/** What a quota counts. */
export type Quota = keyof typeof QUOTAS
