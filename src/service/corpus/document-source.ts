import type { SQLOutputValue } from 'node:sqlite'
import type { DocumentSource } from './corpus.ts'
import { toKind } from './document-kind.ts'

/** The source of a row with `url`, `title`, `publish_date` and `kind`. */
export function toSource({
  url,
  title,
  publish_date: date,
  kind,
}: Record<string, SQLOutputValue>): DocumentSource {
  return {
    url: String(url),
    title: String(title),
    publishDate: typeof date === 'string' ? date : null,
    kind: toKind(kind),
  }
}
