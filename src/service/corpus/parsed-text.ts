/** The result of parsing a file; missing fields have defaults from the file itself. */
export interface ParsedText {
  readonly text: string
  readonly title?: string | undefined
  readonly publishDate?: string | undefined
  readonly url?: string | undefined
}
