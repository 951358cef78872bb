/** What the parser of one format makes of a file; the rest is filled in from the file itself. */
export interface ParsedText {
  readonly text: string
  readonly title?: string | undefined
  readonly publishDate?: string | undefined
  readonly url?: string | undefined
}
