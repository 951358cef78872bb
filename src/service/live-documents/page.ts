import type { Page, PageSource } from '../extract/page.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { IsolatedError } from '../isolated/isolated-error.ts'
import { WebError } from '../web/web-error.ts'

/** A response that was not read for a reason that is not its own: the service is overloaded or closing, or its thread crashed. */
export class UnreadError extends Error {
  override readonly name = 'UnreadError'
}

/**
 * Reads a page as Markdown. Rejects with a {@link WebError} for one that takes too long, with an {@link UnreadError}, or with the
 * signal's reason.
 */
export type ReadPage = (source: PageSource, signal: AbortSignal) => Promise<Page>

/** Reads pages in the isolated thread. */
export function isolatedPages(isolated: Pick<Isolated, 'readPage'>): ReadPage {
  return async (source, signal) => {
    try {
      return await isolated.readPage(source, signal)
    } catch (error) {
      if (!(error instanceof IsolatedError)) throw error
      if (error.isTemporary) throw new UnreadError(`not read yet: ${error.message}`, { cause: error })
      throw new WebError('unsupported_content_type', `The page cannot be read (${error.kind})`, {
        cause: error,
      })
    }
  }
}
