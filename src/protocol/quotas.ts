import { ArgumentError } from './argument-error.ts'
import { checkInteger, checkOptions } from './check.ts'

/** How many requests that create something a service accepts; beyond the interface document. */
export interface QuotaLimit {
  readonly requests: number
  /** Length of the window, in ms. */
  readonly window: number
}

const MINUTE = 60_000
/** The longest window, in ms: an hour. */
const MAX_WINDOW = 60 * MINUTE

/** The known quotas. Each counts the POSTs that create something, of one key. */
const QUOTAS = {
  search: { requests: 600, window: MINUTE },
  extract: { requests: 600, window: MINUTE },
  /** Runs, alone or added to a group: a request counts once, with however many runs. */
  runs: { requests: 2_000, window: MINUTE },
  /** Chat completions and responses. */
  chat: { requests: 300, window: MINUTE },
  findAll: { requests: 300, window: 60 * MINUTE },
  monitors: { requests: 300, window: MINUTE },
} as const satisfies Readonly<Record<string, QuotaLimit>>

/** The kind of request that a quota counts. */
export type Quota = keyof typeof QUOTAS

/** Limits of some quotas, which replace the known ones. */
export type QuotaLimits = Readonly<Partial<Record<Quota, QuotaLimit>>>

/** The limit of each quota. Throws an ArgumentError that names the first invalid one. */
export function quotaLimits(given: QuotaLimits): Readonly<Record<Quota, QuotaLimit>> {
  checkOptions('quotas', given, Object.keys(QUOTAS))
  const limits = Object.entries(given).filter(([, limit]) => limit !== undefined)
  for (const [name, limit] of limits) {
    if (typeof limit !== 'object' || limit === null)
      throw new ArgumentError(`quotas.${name}`, 'an object with requests and window', limit)
    checkOptions(`quotas.${name}`, limit, ['requests', 'window'])
    checkInteger(`quotas.${name}.requests`, limit.requests, 1)
    checkInteger(`quotas.${name}.window`, limit.window, 1, MAX_WINDOW)
  }
  return { ...QUOTAS, ...Object.fromEntries(limits) }
}
