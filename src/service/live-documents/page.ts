import type { Page, PageSource } from '../extract/page.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { IsolatedError } from '../isolated/isolated-error.ts'
import { WebError } from '../web/web-error.ts'

/** Reads a page as Markdown. Rejects with a {@link WebError} for one that takes too long, or with the signal's reason. */
export type ReadPage = (source: PageSource, signal: AbortSignal) => Promise<Page>

/** Reads pages in the isolated thread. */
export function isolatedPages(isolated: Pick<Isolated, 'readPage'>): ReadPage {
  return async (source, signal) => {
    try {
      return await isolated.readPage(source, signal)
    } catch (error) {
      if (!(error instanceof IsolatedError)) throw error
      throw new WebError('unsupported_content_type', `The page cannot be read (${error.kind})`, {
        cause: error,
      })
    }
  }
}
