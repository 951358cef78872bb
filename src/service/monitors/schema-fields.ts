import { isObject } from '../../protocol/json.ts'
import type { JsonSchema } from '../../protocol/requests/json-schema.ts'
import { dates, type Form, versions } from '../processor/passages/forms.ts'
import type { News } from './news.ts'

/** Fills a field of a schema, word for word, besides extraction. */
export interface FieldSource {
  /** Name in the reasoning. */
  readonly name: string
  /** Whether it comes before extraction. */
  readonly isFirst: boolean
  /** The value; null if there is none. */
  value(news: News): string | null
}

const HEADING = /^#{1,6}\s/

/** A value of a form in the new statements: in a heading, such as the heading of a version, else in the others. */
function inStatements(form: Form): (news: News) => string | null {
  return ({ statements }) => {
    const headings = statements.filter((statement) => HEADING.test(statement))
    for (const statement of [...headings, ...statements]) {
      const [found] = form(statement)
      if (found !== undefined) return found.text
    }
    return null
  }
}

/** ISO dates only: other forms would not be of the format `date`. */
const isoDates: Form = (text) => dates(text).filter((date) => /^\d{4}-\d{2}-\d{2}$/.test(date.text))

/** The first new statement that is no heading. */
function firstStatement({ statements }: News): string | null {
  const first = statements.find((statement) => !HEADING.test(statement)) ?? statements[0]
  return first?.replace(/^(?:[-*+]|#{1,6})\s+/, '') ?? null
}

/** Sources by the field's name and format. The first that matches is used. */
const SOURCES: readonly (FieldSource & {
  readonly names: RegExp
  readonly formats: readonly unknown[]
})[] = [
  {
    names: /(?:^|_)(?:url|uri|link)$/i,
    formats: [undefined, 'uri'],
    name: "the document's address",
    isFirst: false,
    value: ({ passage }) => passage.url,
  },
  {
    names: /^(?:document_|source_|page_)?(?:title|headline)$/i,
    formats: [undefined],
    name: "the document's title",
    isFirst: false,
    value: ({ passage }) => passage.title,
  },
  {
    names: /(?:^|_)(?:version|release)$/i,
    formats: [undefined],
    name: 'the version in the new statements',
    isFirst: true,
    value: inStatements(versions),
  },
  {
    names: /(?:^|_)(?:date|day|released|released_at|release_date)$/i,
    formats: [undefined, 'date'],
    name: 'the date in the new statements',
    isFirst: true,
    value: inStatements(isoDates),
  },
  {
    names:
      /^(?:text|content|passage|excerpt|quote|statement|summary|details?|changes?|what_changed|news|event)$/i,
    formats: [undefined],
    name: 'the new statement, word for word',
    isFirst: true,
    value: firstStatement,
  },
]

/** Keywords that restrict a string in ways that a source may violate. */
const RESTRICTIONS = 'enum const pattern minLength maxLength $ref anyOf oneOf allOf not'.split(' ')

/** The source that fills a field, by the field's name; undefined if there is none. */
export function sourceOf(field: string, property: unknown): FieldSource | undefined {
  if (!isObject(property) || !types(property).includes('string')) return undefined
  if (RESTRICTIONS.some((keyword) => keyword in property)) return undefined
  return SOURCES.find(({ names, formats }) => names.test(field) && formats.includes(property['format']))
}

/** Whether a field may be null. */
export function takesNull(property: unknown): boolean {
  return isObject(property) && types(property).includes('null')
}

function types(property: JsonSchema): unknown[] {
  const type = property['type'] ?? 'string'
  return Array.isArray(type) ? type : [type]
}
