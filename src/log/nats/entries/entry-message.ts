import { isObject } from '../../../protocol/json.ts'
import type { ResearchEvent } from '../../../protocol/event.ts'
import type { Entry, Position } from '../../store/contract.ts'
import type { PreparedEntry } from '../../store/new-entry.ts'
import { hashOf } from '../server/names.ts'

/** When a message was stored. */
export interface MessageTimes {
  /** Time of the append by the clock of its writer, in Unix ms. See `recorded-times.ts`. */
  readonly recorded: number
  /** The number up to which the writer knew all entries. */
  readonly known: number
}

/** The fields of an entry's message that identify the entry without its event. */
export interface EntryFields extends MessageTimes {
  /** See `identityKey`. */
  readonly id: string
  readonly revision: number
  readonly completeness: number
  /** See {@link typeField}. */
  readonly type: string
  readonly isBackfill: boolean
}

/** A message that has fields. */
export interface WithFields {
  field(name: string): string
}

/** The field of an entry: one, since each takes time to write and to read. */
const ENTRY = 'Rv-Entry'

/** Fields for people: NATS's own tools show them with a message. A log does not read them, and entries of earlier versions lack them. */
const TYPE = 'Rv-Type'
const SOURCE = 'Rv-Source'

/** Maximum length of a field for people, in characters of its text. */
const MAX_SHOWN = 200

/** The last word of the field of an entry that was read on a walk into the past. */
const BACKFILL = 'backfill'

/** The fields of the message of an entry; undefined for a barrier, and for a message that another program has published there. */
export function fieldsOf(message: WithFields): EntryFields | undefined {
  const words = message.field(ENTRY).split(' ')
  const [id = '', revision, completeness, recorded, known, type = '', backfill] = words
  const fields = {
    id,
    revision: Number(revision),
    completeness: Number(completeness),
    type,
    recorded: Number(recorded),
    known: Number(known),
    isBackfill: backfill === BACKFILL,
  }
  const isEntry =
    words.length >= 6 &&
    isCount(fields.revision) &&
    isCount(fields.completeness) &&
    isCount(fields.known) &&
    Number.isFinite(fields.recorded)
  return isEntry ? fields : undefined
}

/** The field of a barrier, with its times: see `barrier.ts`. */
export const BARRIER = 'Rv-Barrier'

/** The times of an entry or a barrier; undefined for a message that another program has published there. */
export function timesOf(message: WithFields): MessageTimes | undefined {
  const fields = fieldsOf(message)
  if (fields !== undefined) return fields
  const [recorded = NaN, known = NaN] = message.field(BARRIER).split(' ').map(Number)
  return Number.isFinite(recorded) && isCount(known) ? { recorded, known } : undefined
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

/** The fields of an entry as they are sent. @param id See `identityKey`. */
export function sentFields(
  entry: PreparedEntry,
  id: string,
  revision: number,
  { recorded, known }: MessageTimes,
): Readonly<Record<string, string>> {
  const fields = `${id} ${revision} ${entry.completeness} ${recorded} ${known} ${typeField(entry.type)}`
  return {
    [ENTRY]: entry.backfill ? `${fields} ${BACKFILL}` : fields,
    [TYPE]: shown(entry.type),
    [SOURCE]: shown(entry.source),
  }
}

/** The beginning of a text as a field for people. What is not printable ASCII is percent-encoded. */
function shown(text: string): string {
  const beginning = text.slice(0, MAX_SHOWN)
  return /^[!-~]*$/.test(beginning) ? beginning : encodeURI(beginning.toWellFormed())
}

/** A type as a field: itself, or its hash if it is long or has other characters than those of the service's types. */
export function typeField(type: string): string {
  return /^[\w.-]{1,100}$/.test(type) ? type : `#${hashOf(type)}`
}

/** The entry that a reader gets; undefined if the text is not a JSON object. */
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
