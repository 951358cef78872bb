import {
  MAX_APPEND_DONE,
  MAX_APPEND_ENTRIES,
  MAX_APPEND_LENGTH,
  MAX_COMMIT_BYTES,
  MAX_PAGE_LENGTH,
} from './contract.ts'
import { IDENTITY_LIMITS } from './identity-age.ts'
import { MIN_KNOWN_IDS } from './inbox-store.ts'
import { MAX_TOMBSTONES } from './process-store.ts'

/** Limits of every store. A call above one of the first four is refused before it reaches the store. */
export const STORE_LIMITS = {
  /** Maximum number of entries of one append, and of one commit. */
  appendEntries: MAX_APPEND_ENTRIES,
  /** Maximum number of characters of their JSON, unless it is a single entry. */
  appendLength: MAX_APPEND_LENGTH,
  /** Maximum number of deliveries that one append marks as done. */
  appendDone: MAX_APPEND_DONE,
  /** Maximum number of bytes of a commit: states, timers, dead letters and entries. */
  commitBytes: MAX_COMMIT_BYTES,
  /** Number of characters after which a page ends, also a page of states or deliveries. */
  pageLength: MAX_PAGE_LENGTH,
  /** Number of removed keys that a store remembers of each process. */
  tombstones: MAX_TOMBSTONES,
  /** Number of later ids until which the id of a delivery is known at least. */
  knownDeliveries: MIN_KNOWN_IDS,
  /** How long identities are known at least: `minUptime` in ms, and `minNewer` identities. */
  identities: IDENTITY_LIMITS,
} as const
