import type { Fault, FaultKind } from 'rivulet/service'
import { randomOf } from '../../bench/random.ts'
import { TRANSACTIONS } from './messages.ts'
import type { Role, StrikeOrder, TransactionKind } from './messages.ts'

/** A fault with a limited number of strikes. */
export type PlannedFault = Fault & { readonly times: number }

/** What happens to the log's readers and writers, to the service and to the events, after a number of handled events. */
export type Step =
  /** A process is killed, within a transaction where `strike` has one. */
  | {
      readonly at: number
      readonly what: 'kill'
      readonly role: Role
      readonly strike?: StrikeOrder | undefined
    }
  /** A process loses its locks, and another one takes its place while it goes on. */
  | { readonly at: number; readonly what: 'takeover'; readonly role: Role }
  /** The service is restarted. */
  | { readonly at: number; readonly what: 'restart' }
  | { readonly at: number; readonly what: 'fault'; readonly fault: PlannedFault }
  /** Nothing happens for a while. */
  | { readonly at: number; readonly what: 'idle' }
  /** What was recorded without outputs is sent again with them. */
  | { readonly at: number; readonly what: 'outputs' }

/** A fault, with what chance decides about it. */
type Draw<Kind extends FaultKind> = (
  random: () => number,
) => Extract<Fault, { readonly kind: Kind }> & { readonly times: number }

/** Every fault that the service can produce, in each of its forms. */
const FAULTS: { readonly [Kind in FaultKind]: readonly Draw<Kind>[] } = {
  cut: [
    (random) => ({ kind: 'cut', after: whole(random, 50), times: 2 }),
    (random) => ({ kind: 'cut', at: 'line', after: whole(random, 50), times: 2 }),
    (random) => ({ kind: 'cut', at: 'character', after: whole(random, 50), times: 2 }),
    (random) => ({ kind: 'cut', at: 'chunk', after: whole(random, 50), times: 2 }),
  ],
  stall: [(random) => ({ kind: 'stall', after: whole(random, 50), times: 1 })],
  close: [
    () => ({ kind: 'close', after: 0, times: 2 }),
    (random) => ({ kind: 'close', after: 1 + whole(random, 20), times: 2 }),
  ],
  slow: [(random) => ({ kind: 'slow', after: whole(random, 20), bytes: 16, times: 2 })],
  'repeat-events': [(random) => ({ kind: 'repeat-events', count: 1 + whole(random, 20), times: 2 })],
  'deleted-group': [() => ({ kind: 'deleted-group', times: 3 })],
  malformed: [(random) => ({ kind: 'malformed', after: whole(random, 20), times: 2 })],
  gzip: [() => ({ kind: 'gzip', times: 2 })],
  'wrong-type': [(random) => ({ kind: 'wrong-type', ...somewhere(random), times: 2 })],
  truncated: [() => ({ kind: 'truncated', times: 2 })],
  status: [
    ...[408, 500, 502, 503, 504].map((status): Draw<'status'> => (random) => ({
      kind: 'status',
      status,
      ...somewhere(random),
      times: 2,
    })),
    (random) => ({ kind: 'status', status: 429, retryAfter: 1, ...somewhere(random), times: 1 }),
    (random) => ({
      kind: 'status',
      status: 503,
      retryAfter: 1,
      retryAfterForm: 'date',
      ...somewhere(random),
      times: 1,
    }),
  ],
  'invalid-cursor': [() => ({ kind: 'invalid-cursor', times: 1 })],
  repeat: [() => ({ kind: 'repeat', times: 20 })],
  reorder: [() => ({ kind: 'reorder', times: 5 })],
  delay: [() => ({ kind: 'delay', by: 10_000, times: 5 })],
  lose: [() => ({ kind: 'lose', times: 5 })],
  'lose-answer': [() => ({ kind: 'lose-answer', times: 5 })],
}

/** Minimum number of events for a plan with faults. */
const MIN_EVENTS_FOR_FAULTS = 1_000
/** Approximate number of events per round of all faults. */
const ROUND = 10_000
/** Steps begin within this range of the events; faults strike until the end. */
const BEGINNING = 0.02
const END = 0.8

/** Which process has each kind of transaction. */
const ROLE_OF: { readonly [Kind in TransactionKind]: Role } = {
  append: 'recorder',
  inbox: 'receiver',
  acknowledge: 'billing',
  effect: 'ledger',
  timer: 'board',
  trim: 'recorder',
}

/** The kills, in turn: within each kind of transaction, before and after its commit, and at any moment. */
const KILLS: readonly Pick<Extract<Step, { readonly what: 'kill' }>, 'role' | 'strike'>[] = [
  ...TRANSACTIONS.map((within) => ({ role: ROLE_OF[within], strike: { within, at: 'before' } as const })),
  { role: 'recorder' },
  ...TRANSACTIONS.map((within) => ({ role: ROLE_OF[within], strike: { within, at: 'after' } as const })),
  { role: 'billing' },
]

/** Number of kills after which each kind of transaction was struck before and after its commit. */
export const KILLS_PER_ROUND = KILLS.length

/** The processes that write under a fence. */
const FENCED: readonly Role[] = ['recorder', 'billing', 'ledger', 'board']

/** Number of takeovers. */
export const TAKEOVERS = FENCED.length

/** Number of times in which nothing happens for a while. */
const IDLE_GAPS = 3

/**
 * The steps of a soak, in order: `kills` kills, every fault in each of its forms if there are enough events, idle gaps,
 * takeovers, the outputs, and two restarts of the service. The second restart is the last step: it makes every stream reconnect, and so meet the
 * remaining faults. The same seed gives the same plan.
 */
export function planOf(events: number, kills: number, seed: number): readonly Step[] {
  const random = randomOf(seed)
  const moment = (part = random()) => Math.floor(events * (BEGINNING + (END - BEGINNING) * part))
  const first = whole(random, KILLS.length)
  // Evenly distributed: a kill right after a start tests nothing.
  const killings = Array.from({ length: kills }, (_, n): Step => {
    const { role, strike } = KILLS[(first + n) % KILLS.length] ?? { role: 'recorder' }
    return { at: moment((n + random()) / kills), what: 'kill', role, strike }
  })
  const rounds = events < MIN_EVENTS_FOR_FAULTS ? 0 : Math.max(1, Math.round(events / ROUND))
  const faults = faultDraws(rounds).map((draw): Step => ({
    at: moment(),
    what: 'fault',
    fault: draw(random),
  }))
  const idle = Array.from({ length: IDLE_GAPS }, (): Step => ({ at: moment(), what: 'idle' }))
  const takeovers = FENCED.map((role): Step => ({ at: moment(), what: 'takeover', role }))
  const restart: Step = { at: moment(), what: 'restart' }
  const outputs: Step = { at: moment(0.5), what: 'outputs' }
  const steps = [...killings, ...faults, ...idle, ...takeovers, outputs, restart].toSorted(
    (a, b) => a.at - b.at,
  )
  return [...steps, { at: moment(1), what: 'restart' }]
}

/** So many rounds of every fault in each of its forms. */
export function faultDraws(rounds: number): readonly ((random: () => number) => PlannedFault)[] {
  return Array.from({ length: rounds }, () => Object.values(FAULTS).flat()).flat()
}

/** A readable form of a fault: its kind, and its distinguishing options. */
export function formOf(fault: Fault): string {
  switch (fault.kind) {
    case 'cut':
      return `cut ${fault.at ?? 'event'}`
    case 'close':
      return fault.after === 0 ? 'close at once' : 'close'
    case 'status': {
      const { status, retryAfter, retryAfterForm = 'seconds' } = fault
      return retryAfter === undefined ? `status ${status}` : `status ${status} ${retryAfterForm}`
    }
    default:
      return fault.kind
  }
}

/** Selects the requests of a fault: all, or those of a group's streams, which are less frequent. */
function somewhere(random: () => number): { readonly path?: string } {
  const path = [undefined, '/v1/tasks/groups/', '/v1beta/tasks/groups/'][whole(random, 3)]
  return path === undefined ? {} : { path }
}

/** A whole number from 0, below `end`. */
export function whole(random: () => number, end: number): number {
  return Math.floor(random() * end)
}
