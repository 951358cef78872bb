import type { Page, PageSource } from '../extract/page.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { IsolatedError } from '../isolated/isolated-error.ts'
import { WebError } from '../web/web-error.ts'
import type { ListingContent, ListingSource } from './listing-content.ts'

/** A response that was not read for a reason that is not its own: the service is overloaded or closing, or its thread crashed. */
export class UnreadError extends Error {
  override readonly name = 'UnreadError'
}

/**
 * Reads responses. Both reject with a {@link WebError} for a response that is refused or takes too long, with an
 * {@link UnreadError}, or with the signal's reason.
 */
export interface Readers {
  /** Reads a page as Markdown. */
  readPage(source: PageSource, signal: AbortSignal): Promise<Page>
  /** Reads a sitemap or a feed; undefined for anything else. */
  readListing(source: ListingSource, signal: AbortSignal): Promise<ListingContent | undefined>
}

/** Reads in the isolated thread. */
export function isolatedReaders(isolated: Pick<Isolated, 'readPage' | 'readListing'>): Readers {
  return {
    readPage: (source, signal) => isolated.readPage(source, signal).catch(failed('page')),
    async readListing(source, signal) {
      const content = await isolated.readListing(source, signal).catch(failed('sitemap or feed'))
      if (content?.type === 'refused') throw new WebError(content.kind, content.message)
      return content
    },
  }
}

/** Throws what an error of the isolated thread says about the response. */
function failed(what: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof IsolatedError)) throw error
    if (error.isTemporary) throw new UnreadError(`not read yet: ${error.message}`, { cause: error })
    throw new WebError('unsupported_content_type', `The ${what} cannot be read (${error.kind})`, {
      cause: error,
    })
  }
}
