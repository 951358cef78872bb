import type { Cause } from '../../protocol/event.ts'
import { hash, hashString } from '../../protocol/identity-hash.ts'
import type { Timer } from '../store/process-store.ts'

/** The id of an event that a process appends: the same for each run over the same entries, so that the log skips what it has. */
export function outputId(
  { process, source, id, revision }: Pick<Cause, 'process' | 'source' | 'id' | 'revision'>,
  chain: string | undefined,
  key: string,
  index: number,
): string {
  return hashOf([process, source, id, revision, chain, key, index])
}

/**
 * A hash of a timer that fires, and of those that have set it, one after the other, since the entry. Two timers that are set because of one
 * entry may set a third one twice to the same time, where their clocks differ: the chains differ then.
 *
 * @param setBy The chain of the timer that set it; null where an entry set it.
 */
export function chainOf(
  { name, clock, due }: Pick<Timer, 'name' | 'clock' | 'due'>,
  setBy: string | null,
): string {
  return hashOf([name, clock, due, setBy])
}

function hashOf(parts: readonly unknown[]): string {
  hashString(JSON.stringify(parts))
  return Array.from(hash, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}
