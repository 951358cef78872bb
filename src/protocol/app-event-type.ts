import { nearestName } from './check.ts'
import { EVENT_TYPES, familyOf } from './event-types.ts'

const FAMILIES = new Set(EVENT_TYPES.filter((type) => type.includes('.')).map(familyOf))

/**
 * The form of a type that an application declares: two to six words with dots between. The first words of our types are excluded: such a
 * type is misspelled, or the service may get it later.
 */
export const APP_EVENT_TYPE = new RegExp(
  `^(?!(?:${[...FAMILIES].join('|')})\\.)[\\w-]{1,60}(?:\\.[\\w-]{1,60}){1,5}$`,
)

/**
 * Whether an application can declare this type: it has the form, and does not look like a misspelled one of these. One edit for each ten
 * characters is a misspelling: with more, `resource.failed` would be one of `source.failed`.
 */
export function isAppEventType(type: string, known: readonly string[] = EVENT_TYPES): boolean {
  return (
    APP_EVENT_TYPE.test(type) &&
    nearestName(type, known, ({ length }) => Math.floor(length / 10)) === undefined
  )
}
