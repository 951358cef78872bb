/**
 * How long a log knows the identity of an event, so that the event is not recorded again: as long as it has the entry, and
 * beyond both of these limits.
 */
export interface IdentityLimits {
  /** Uptime of the log, in ms. */
  readonly minUptime: number
  /** Number of newer identities. */
  readonly minNewer: number
}

export const IDENTITY_LIMITS: IdentityLimits = { minUptime: 48 * 3_600_000, minNewer: 100_000 }

/**
 * The largest step of the uptime between two appends, in ms. A log that was not appended to has not become older, whether its
 * machine was off or its recorder.
 */
const MAX_STEP = 5 * 60_000

/** Uptime between two marks, in ms. */
const MARK_INTERVAL = 3_600_000

/** The number of identities deleted by one sweep is worth reading them all: at least this many, and this share. */
const MIN_SWEPT = 1_000
const MIN_SWEPT_SHARE = 0.2

/**
 * The uptime of a log: the time in which it was appended to, by a monotonic clock that all processes of a machine share. So
 * neither a clock that is set nor a machine that was off makes identities old.
 */
export interface Uptime {
  /** Uptime, in ms. */
  readonly uptime: number
  /** The monotonic clock at the last append, in ms. It begins anew when the machine starts. */
  readonly clock: number
}

/** The state of the log at one uptime. */
export interface Mark {
  readonly uptime: number
  /** Number of identities that it had ever had. */
  readonly identities: number
  /** The number of its last entry. */
  readonly position: number
}

/** The uptime after an append at this time of the monotonic clock. */
export function advanced({ uptime, clock }: Uptime, now: number): Uptime {
  const step = Math.min(Math.max(0, now - clock), MAX_STEP)
  return { uptime: uptime + Math.floor(step), clock: Math.floor(now) }
}

/** Whether a mark is due. */
export function isMarkDue(before: Uptime, after: Uptime): boolean {
  return Math.floor(before.uptime / MARK_INTERVAL) < Math.floor(after.uptime / MARK_INTERVAL)
}

/** Whether a sweep of all identities is worth its work. */
export function isSweepDue(deletable: number, identities: number): boolean {
  return deletable >= Math.max(MIN_SWEPT, identities * MIN_SWEPT_SHARE)
}
