import type { OwnEventData } from './event.ts'

/** A type of events that this package declares. An application may declare more. */
export type OwnEventType = keyof OwnEventData

/** The first word of a type, such as `monitor`. */
export type EventFamily = FamilyOf<OwnEventType>

type FamilyOf<Type extends string> = Type extends `${infer Family}.${string}` ? Family : Type

/** The keys of {@link OwnEventData}, which the compiler compares. Lists and schemas have this order. */
const TYPES: Readonly<Record<OwnEventType, true>> = {
  'monitor.event_stream': true,
  'monitor.snapshot': true,
  'monitor.completion': true,
  'monitor.error': true,
  'monitor.cancelled': true,
  'task_group.status': true,
  'task_run.state': true,
  'task_run.progress_stats': true,
  'task_run.progress_msg': true,
  'findall.status': true,
  'findall.candidate.generated': true,
  'findall.candidate.matched': true,
  'findall.candidate.unmatched': true,
  'findall.candidate.discarded': true,
  'findall.candidate.enriched': true,
  'findall.schema.updated': true,
  error: true,
  'stream.gap': true,
  'stream.oversized': true,
  'source.failed': true,
  'source.live': true,
  'source.lost': true,
  'source.behind': true,
  'source.caught_up': true,
  'log.tick': true,
  'log.progress': true,
  'log.gap': true,
  'log.clock': true,
  'alert.pending': true,
  'alert.inactive': true,
  'alert.firing': true,
  'alert.resolved': true,
  'alert.unknown': true,
  'alert.known': true,
  'alert.late': true,
  'gateway.search': true,
  'gateway.session': true,
  'gateway.revoked': true,
  'window.result': true,
  'join.result': true,
  'stage.dropped': true,
  unknown: true,
}

/** A type of the entries that move the event time of processes, and report no event. */
export type TimeEventType = 'log.tick' | 'log.progress'

/** Whether entries of this type move the event time of processes. */
export function isTimeEventType(type: string): type is TimeEventType {
  return type === 'log.tick' || type === 'log.progress'
}

/** Whether it is a type of this package. */
export function isOwnEventType(type: string): type is OwnEventType {
  return Object.hasOwn(TYPES, type)
}

/** Every type of this package. */
export const EVENT_TYPES: readonly OwnEventType[] = Object.keys(TYPES).filter(isOwnEventType)

/** The family of a type. */
export function familyOf(type: string): string {
  return type.split('.', 1)[0] ?? type
}

/** The types of a family. */
export function typesOf<Family extends EventFamily>(
  family: Family,
): readonly Extract<OwnEventType, Family | `${Family}.${string}`>[] {
  return EVENT_TYPES.filter(
    (type): type is Extract<OwnEventType, Family | `${Family}.${string}`> => familyOf(type) === family,
  )
}
