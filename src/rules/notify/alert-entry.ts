import type { Entry } from '../../log/store/entry.ts'
import type { EventOf } from '../../protocol/event.ts'
import { isObject, isText } from '../../protocol/json.ts'
import { cutText } from '../../protocol/cut-text.ts'
import { RivuletError } from '../../protocol/rivulet-error.ts'

/** An alert that fires. */
export type FiringEntry = Entry<EventOf<'alert.firing'>>
/** An event of an alert that has ended. */
export type ResolvedEntry = Entry<EventOf<'alert.resolved'>>
/** An alert of which nothing is known for the moment. */
type UnknownEntry = Entry<EventOf<'alert.unknown'>>
/** It is known again. */
type KnownEntry = Entry<EventOf<'alert.known'>>

/** An event of an alert. */
export type AlertEntry = FiringEntry | ResolvedEntry | UnknownEntry | KnownEntry

/** The annotations of an alert that fires or has ended. If its rule did not have all events, `incomplete` says so, unless the rule has one. */
export function annotationsOf({
  annotations,
  complete,
}: (FiringEntry | ResolvedEntry)['data']): Readonly<Record<string, string>> {
  if (complete !== false) return annotations
  return { incomplete: 'The rule did not have all events when this alert began.', ...annotations }
}

/** Maximum size of an alert's labels and annotations, as JSON in bytes. It fits into a state of a process. */
const MAX_BYTES = 192 * 1024

/** An event of the log that no notifier can use, such as one without labels. */
export class AlertEventError extends RivuletError {
  override readonly name = 'AlertEventError'
  override readonly code = 'alert_event'
}

/**
 * Throws for an event whose data does not fit its type, since programs can append any event to a log.
 *
 * @throws {AlertEventError}
 */
export function checkAlert(entry: AlertEntry): void {
  const problem = problemOf(entry)
  if (problem === undefined) return
  const shown = `${entry.type} ${JSON.stringify(cutText(entry.id, 100))}`
  throw new AlertEventError(`the event ${shown} ${problem}`)
}

/** The problem of an event that cannot be notified; undefined if it has none. */
export function problemOf({
  type,
  data,
}: {
  readonly type: string
  readonly data: unknown
}): string | undefined {
  if (!isObject(data)) return 'has no data'
  if (!isText(data['alert'])) return 'has no name of an alert'
  if (!isTexts(data['labels'])) return 'has no labels, or one that is not a text'
  const { labels, annotations, since, episode } = data
  if (Buffer.byteLength(JSON.stringify([labels, annotations, since, episode])) > MAX_BYTES)
    return 'has labels and annotations of more than 192 KiB'
  if (type === 'alert.unknown' || type === 'alert.known') return undefined
  if (!isTexts(annotations)) return 'has no annotations, or one that is not a text'
  if (!isText(since) || Number.isNaN(Date.parse(since))) return 'has no time `since`'
  if (!isText(episode)) return 'has no episode'
  return undefined
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return isObject(value) && Object.values(value).every((text) => typeof text === 'string')
}
