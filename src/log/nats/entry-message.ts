import { isObject } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { Entry, Position } from '../store/contract.ts'
import type { PreparedEntry } from '../store/prepared-entry.ts'
import { hashOf } from './names.ts'

/** What of a message of an entry is needed to know the entry without its event. */
export interface EntryFields {
  /** See `identityKey`. */
  readonly id: string
  readonly revision: number
  readonly completeness: number
  /** See {@link typeField}. */
  readonly type: string
  /** When it was appended by the clock of its writer, in Unix ms. See `recorded-times.ts`. */
  readonly recorded: number
  /** Up to which number the writer knew all entries. */
  readonly known: number
  readonly isBackfill: boolean
}

/** A message that has fields. */
export interface WithFields {
  field(name: string): string
}

/** The field of the writer, where the message has the id of its identity alone. */
export const WRITER = 'Rv-Writer'

/** The fields of the message of an entry; undefined for a message that another program has published there. */
export function fieldsOf(message: WithFields): EntryFields | undefined {
  const fields = {
    id: message.field('Rv-Id'),
    revision: Number(message.field('Rv-Revision')),
    completeness: Number(message.field('Rv-Completeness')),
    type: message.field('Rv-Type'),
    recorded: Number(message.field('Rv-Recorded')),
    known: Number(message.field('Rv-Known')),
    isBackfill: message.field('Rv-Backfill') !== '',
  }
  const { revision, completeness, recorded, known } = fields
  const isEntry =
    fields.id !== '' &&
    [revision, completeness, known].every((number) => Number.isSafeInteger(number) && number >= 0) &&
    message.field('Rv-Recorded') !== '' &&
    Number.isFinite(recorded)
  return isEntry ? fields : undefined
}

/** The fields of an entry as they are sent. @param id See `identityKey`. */
export function sentFields(
  entry: PreparedEntry,
  id: string,
  revision: number,
  { recorded, known }: Pick<EntryFields, 'recorded' | 'known'>,
): Readonly<Record<string, string>> {
  return {
    'Rv-Id': id,
    'Rv-Revision': String(revision),
    'Rv-Completeness': String(entry.completeness),
    'Rv-Type': typeField(entry.type),
    'Rv-Recorded': String(recorded),
    'Rv-Known': String(known),
    ...(entry.backfill && { 'Rv-Backfill': '1' }),
  }
}

/** A type as a field: itself, or its hash where it is long or has other characters than those of the service's types. */
export function typeField(type: string): string {
  return /^[\w.-]{1,100}$/.test(type) ? type : `#${hashOf(type)}`
}

/** The entry that a reader gets; undefined where the text is not a JSON object. */
export function entryOf(
  json: string,
  { revision, isBackfill }: EntryFields,
  recorded: number,
  position: Position,
): Entry | undefined {
  try {
    const event: ResearchEvent = JSON.parse(json)
    const place = { position, recorded, revision, backfill: isBackfill }
    return isObject(event) ? Object.assign(event, place) : undefined
  } catch {
    return undefined
  }
}

/** The last token of a subject: a hash. */
export function tokenOf(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1)
}
