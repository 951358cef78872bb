/** A document that an answer or an event cites. */
export interface DashboardDocument {
  readonly title: string
  /** Text of the document, in which excerpts are found. */
  readonly text: string
}

/** The document with this URL; undefined if there is none. */
export type FindDocument = (
  url: string,
) => DashboardDocument | undefined | PromiseLike<DashboardDocument | undefined>

/** The answer of a dashboard to `GET /document`. */
export interface FoundDocument extends DashboardDocument {
  readonly url: string
  /** Set if the text was too long. */
  readonly truncated?: true
}

/** The longest URL, and the longest text that is sent, in characters. */
const MAX_URL = 8_192
const MAX_TEXT = 2_000_000

/** Finds a document. Undefined if there is none. */
export async function findDocument(
  find: FindDocument | undefined,
  url: string | null,
): Promise<FoundDocument | undefined> {
  if (find === undefined || url === null || url === '' || url.length > MAX_URL) return undefined
  const found = await find(url)
  if (found === undefined) return undefined
  const { title, text } = found
  if (text.length <= MAX_TEXT) return { url, title, text }
  return { url, title, text: text.slice(0, MAX_TEXT).toWellFormed(), truncated: true }
}
