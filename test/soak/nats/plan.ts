import { randomOf } from '../../../bench/random.ts'
import { faultDraws, whole } from '../plan.ts'
import type { PlannedFault } from '../plan.ts'
import type { Strike } from './messages.ts'

/** What happens after a number of recorded events. */
export type NatsStep =
  /** A worker is killed, within a write where `strike` has one. `worker` is a number from 0 to 1. */
  | {
      readonly at: number
      readonly what: 'kill'
      readonly worker: number
      readonly strike?: Strike | undefined
    }
  /** A worker is suspended for so many leases. */
  | {
      readonly at: number
      readonly what: 'stop'
      readonly worker: number
      readonly leases: number
      readonly strike?: Strike | undefined
    }
  /** The NATS server is killed and is down for so many leases. */
  | { readonly at: number; readonly what: 'server-kill'; readonly leases: number }
  /** The service is restarted. */
  | { readonly at: number; readonly what: 'restart' }
  | { readonly at: number; readonly what: 'fault'; readonly fault: PlannedFault }
  /** What was recorded without outputs is sent again with them. */
  | { readonly at: number; readonly what: 'outputs' }

/** How much happens in a soak of a log on NATS. */
export interface NatsPlanOptions {
  readonly events: number
  readonly kills: number
  readonly stops: number
  readonly serverKills: number
  /** How often each fault of the service is armed. */
  readonly faultRounds: number
  readonly seed: number
}

/** Steps begin within this range of the events; faults strike until the end. */
const BEGINNING = 0.05
const END = 0.85

/** How long the server is down, in turn, in leases. */
const DOWNTIMES = [0, 0.5, 1.5] as const

/** The steps of a soak, in order. The same options give the same plan. The last step makes every stream reconnect, and so meet the remaining faults. */
export function natsPlanOf(options: NatsPlanOptions): readonly NatsStep[] {
  const { events, kills, stops, serverKills, faultRounds, seed } = options
  const random = randomOf(seed)
  const moment = (part = random()) => Math.floor(events * (BEGINNING + (END - BEGINNING) * part))
  /** Evenly distributed. */
  const times = (count: number, step: (at: number, n: number) => NatsStep) =>
    Array.from({ length: count }, (_, n) => step(moment((n + random()) / count), n))
  const strike = (signal: Strike['signal']): Strike | undefined => {
    const within = (['append', 'append', 'commit', undefined] as const)[whole(random, 4)]
    return within && { within, delay: whole(random, 6), signal }
  }
  const steps: readonly NatsStep[] = [
    ...times(kills, (at) => ({ at, what: 'kill', worker: random(), strike: strike('SIGKILL') })),
    ...times(stops, (at) => ({
      at,
      what: 'stop',
      worker: random(),
      leases: 1.5 + random(),
      strike: strike('SIGSTOP'),
    })),
    ...times(serverKills, (at, n) => ({ at, what: 'server-kill', leases: DOWNTIMES[n % 3] ?? 0 })),
    ...faultDraws(faultRounds).map((draw): NatsStep => ({
      at: moment(),
      what: 'fault',
      fault: draw(random),
    })),
    { at: moment(0.5), what: 'outputs' },
    { at: moment(), what: 'restart' },
  ]
  return [...steps.toSorted((a, b) => a.at - b.at), { at: moment(1), what: 'restart' }]
}
