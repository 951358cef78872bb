import type { NatsPlanOptions } from './plan.ts'
import type { NatsSoakResult } from './soak.ts'

/** What has to be 0, and what it means where it is not. */
const ZEROS = {
  lost: 'events were lost',
  vanished: 'entries have vanished from the server',
  deleted_early: 'entries were deleted while a reader needed them',
  unread: 'entries were deleted before the audit had read them: it is too slow',
  doubled: 'entries were doubled',
  recorded_twice: 'events were recorded twice',
  reordered: 'entries were out of order within their source',
  process_diverged: 'states or outputs of the process are not those of its entries',
  unhandled: 'entries were not handled',
  acknowledged_unhandled: 'entries were acknowledged and not handled',
  doubled_effects: 'effects were doubled',
} satisfies { readonly [Name in keyof NatsSoakResult]?: string }

/** What a soak has found, and what of its plan did not happen. */
export function natsComplaints(
  result: NatsSoakResult,
  { kills, stops, serverKills }: Pick<NatsPlanOptions, 'kills' | 'stops' | 'serverKills'>,
): readonly string[] {
  const counters: Readonly<Record<string, unknown>> = { ...result }
  const broken = Object.entries(ZEROS).flatMap(([name, what]) => {
    return counters[name] === 0 ? [] : [`${String(counters[name])} ${what}`]
  })
  const idle = Object.keys(result.faults).filter((fault) => result.faults[fault] === 0)
  return [
    ...broken,
    ...result.unexpected.map((failure) => `a worker has failed: ${failure}`),
    ...(result.kills < kills ? [`only ${result.kills} of ${kills} kills took place`] : []),
    ...(result.stops < stops ? [`only ${result.stops} of ${stops} suspensions took place`] : []),
    ...(result.server_kills < serverKills ? [`the server was killed ${result.server_kills} times`] : []),
    ...(result.deleted === 0 ? ['no entry was deleted'] : []),
    ...(result.revisions === 0 ? ['no entry was more complete than an earlier one'] : []),
    ...(idle.length > 0 ? [`never struck: ${idle.join(', ')}`] : []),
  ]
}
