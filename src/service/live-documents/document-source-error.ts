import { shownUrl } from './source.ts'
import { RivuletError } from '../../protocol/rivulet-error.ts'

/** A source that cannot be read, or not completely. Its message has the URL without the query. Reported once, until it changes. */
export class DocumentSourceError extends RivuletError {
  override readonly name = 'DocumentSourceError'
  override readonly code = 'document_source'
  /** URL without the query. */
  readonly url: string

  constructor(url: string, message: string, options?: ErrorOptions) {
    const shown = shownUrl(url)
    super(`The source ${shown} cannot be read completely: ${message}`, options)
    this.url = shown
  }
}
