import type { Fault } from 'rivulet/service'
import { randomOf } from './random.ts'

/** What happens to the service or the pipeline, once so many events were handled. */
export type Step =
  | { readonly at: number; readonly what: 'kill' }
  | { readonly at: number; readonly what: 'restart' }
  | { readonly at: number; readonly what: 'fault'; readonly fault: Fault }

const STATUSES = [408, 429, 500, 502, 503, 504]

/** Every fault that the service can produce, each with what chance decides about it. */
const FAULTS: readonly ((random: () => number) => Fault)[] = [
  (random) => ({ kind: 'cut', after: whole(random, 50), times: 2 }),
  (random) => ({ kind: 'cut', at: 'line', after: whole(random, 50), times: 2 }),
  (random) => ({ kind: 'cut', at: 'character', after: whole(random, 50), times: 2 }),
  (random) => ({ kind: 'cut', at: 'chunk', after: whole(random, 50), times: 2 }),
  (random) => ({ kind: 'stall', after: whole(random, 50), times: 1 }),
  (random) => ({ kind: 'close', after: whole(random, 20), times: 2 }),
  () => ({ kind: 'close', after: 0, times: 2 }),
  (random) => ({ kind: 'slow', after: whole(random, 20), bytes: 16, times: 2 }),
  (random) => ({ kind: 'malformed', after: whole(random, 20), times: 2 }),
  () => ({ kind: 'gzip', times: 2 }),
  () => ({ kind: 'wrong-type', times: 2 }),
  () => ({ kind: 'truncated', times: 2 }),
  (random) => ({ kind: 'status', status: STATUSES[whole(random, STATUSES.length)] ?? 500, times: 3 }),
  () => ({ kind: 'status', status: 429, retryAfter: 0, times: 2 }),
  () => ({ kind: 'status', status: 503, retryAfter: 1, retryAfterForm: 'date', times: 1 }),
  () => ({ kind: 'invalid-cursor', times: 1 }),
  () => ({ kind: 'deleted-group', times: 3 }),
  () => ({ kind: 'repeat', times: 20 }),
  () => ({ kind: 'reorder', times: 5 }),
  () => ({ kind: 'delay', by: 10_000, times: 5 }),
  () => ({ kind: 'lose', times: 5 }),
  () => ({ kind: 'lose-answer', times: 5 }),
]

/**
 * What happens in a run, in order: `kills` kills and every kind of fault at least once where there is room, all while
 * events are still to come. The same seed gives the same plan.
 */
export function planOf(events: number, kills: number, seed: number): readonly Step[] {
  const random = randomOf(seed)
  const moment = () => Math.floor(events * (0.02 + 0.88 * random()))
  const killings = Array.from({ length: kills }, (): Step => ({ at: moment(), what: 'kill' }))
  const restarts = Array.from({ length: 2 }, (): Step => ({ at: moment(), what: 'restart' }))
  const rounds = Math.max(1, Math.round(events / 10_000))
  const faults = Array.from({ length: rounds }, () => FAULTS)
    .flat()
    .map((faultOf): Step => ({ at: moment(), what: 'fault', fault: faultOf(random) }))
  return [...killings, ...restarts, ...faults].toSorted((a, b) => a.at - b.at)
}

/** A whole number from 0, below `end`. */
function whole(random: () => number, end: number): number {
  return Math.floor(random() * end)
}
