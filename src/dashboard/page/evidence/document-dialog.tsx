import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { formats } from '../parts/format.ts'
import { ExternalLink } from '../parts/external-link.tsx'
import { Icon } from '../parts/icon.tsx'
import { Loading } from '../parts/notice.tsx'
import { siteOf } from './address.ts'
import { findPassage } from './passage.ts'
import type { Quotation } from './quote.tsx'
import { Foreign, visible } from '../parts/foreign.tsx'

/** The text of a document. */
export interface QuotedDocument {
  readonly title: string | null
  readonly text: string
}

/** Fetches the text of a document; resolves to undefined if the server does not have it. */
export type FetchDocument = (url: string, signal: AbortSignal) => Promise<QuotedDocument | undefined>

/** Characters around a passage that are shown at first. */
const AROUND = 15_000

type Loaded =
  | { readonly state: 'loading' }
  | { readonly state: 'there'; readonly document: QuotedDocument }
  | { readonly state: 'missing' }
  | { readonly state: 'failed'; readonly message: string }

/** Shows a quotation within its document. It is open while there is a quotation. */
export function DocumentDialog({
  quotation,
  fetchDocument,
  onClose,
}: {
  readonly quotation: Quotation | undefined
  readonly fetchDocument: FetchDocument
  readonly onClose: () => void
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null)

  useEffect(() => {
    // The browser moves the focus into a modal dialog, keeps it there, and gives it back.
    if (quotation === undefined || dialog.current?.open !== false) return
    dialog.current.showModal()
    // A screen reader begins with the title, not with the first link.
    dialog.current.querySelector('h2')?.focus()
  }, [quotation])

  return (
    <dialog
      ref={dialog}
      className="document"
      aria-labelledby="document-title"
      onClose={onClose}
      onClick={(event) => {
        // The dialog itself is what surrounds its content.
        if (event.target === dialog.current) dialog.current.close()
      }}
    >
      {quotation !== undefined && (
        <Content
          key={`${quotation.url}\n${quotation.excerpt}`}
          quotation={quotation}
          fetchDocument={fetchDocument}
          onClose={() => dialog.current?.close()}
        />
      )}
    </dialog>
  )
}

/** Loads a document, and again at each retry. */
function useDocument(url: string, fetchDocument: FetchDocument) {
  const [attempt, setAttempt] = useState(0)
  const [loaded, setLoaded] = useState<Loaded>({ state: 'loading' })

  useEffect(() => {
    const abort = new AbortController()
    setLoaded({ state: 'loading' })
    fetchDocument(url, abort.signal).then(
      (document) => {
        if (abort.signal.aborted) return
        setLoaded(document === undefined ? { state: 'missing' } : { state: 'there', document })
      },
      (error: unknown) => {
        if (abort.signal.aborted) return
        setLoaded({ state: 'failed', message: error instanceof Error ? error.message : String(error) })
      },
    )
    return () => abort.abort()
  }, [url, fetchDocument, attempt])

  return { loaded, retry: () => setAttempt(attempt + 1) }
}

function Content({
  quotation,
  fetchDocument,
  onClose,
}: {
  readonly quotation: Quotation
  readonly fetchDocument: FetchDocument
  readonly onClose: () => void
}): ReactNode {
  const { url } = quotation
  const { loaded, retry } = useDocument(url, fetchDocument)
  const title =
    (loaded.state === 'there' ? loaded.document.title : undefined) ?? quotation.title ?? siteOf(url)
  return (
    <div className="document-content">
      <header className="document-header">
        <div>
          <h2 id="document-title" tabIndex={-1}>
            <Foreign>{title}</Foreign>
          </h2>
          <p className="source">
            <ExternalLink url={url}>
              <Foreign>{url}</Foreign>
            </ExternalLink>
          </p>
        </div>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </header>
      {loaded.state === 'loading' && (
        <div className="document-text">
          <Loading what="the document" rows={6} />
        </div>
      )}
      {loaded.state === 'there' && <DocumentText text={loaded.document.text} excerpt={quotation.excerpt} />}
      {loaded.state === 'missing' && (
        <WithoutDocument excerpt={quotation.excerpt}>
          This dashboard has no copy of the document. The excerpt:
        </WithoutDocument>
      )}
      {loaded.state === 'failed' && (
        <WithoutDocument excerpt={quotation.excerpt}>
          The document could not be loaded: {loaded.message}{' '}
          <button type="button" className="button small" onClick={retry}>
            Try again
          </button>
        </WithoutDocument>
      )}
    </div>
  )
}

function WithoutDocument({
  excerpt,
  children,
}: {
  readonly excerpt: string
  readonly children: ReactNode
}): ReactNode {
  return (
    <div className="document-text">
      <p className="document-note" role="status">
        {children}
      </p>
      <Excerpt excerpt={excerpt} />
    </div>
  )
}

function Excerpt({ excerpt }: { readonly excerpt: string }): ReactNode {
  return (
    <blockquote className="excerpt" dir="auto">
      {visible(excerpt)}
    </blockquote>
  )
}

function DocumentText({ text, excerpt }: { readonly text: string; readonly excerpt: string }): ReactNode {
  const mark = useRef<HTMLElement>(null)
  const [isWhole, setWhole] = useState(false)
  const passage = findPassage(text, excerpt)

  useLayoutEffect(() => {
    mark.current?.scrollIntoView({ block: 'center' })
  }, [isWhole])

  const from = isWhole || passage === undefined ? 0 : Math.max(0, passage.from - AROUND)
  const to = isWhole ? text.length : Math.min(text.length, (passage?.to ?? AROUND) + AROUND)
  return (
    // A region that scrolls takes the focus, so that the arrow keys reach its text.
    <div className="document-text" tabIndex={0} role="region" aria-label="Text of the document">
      {passage === undefined && (
        <>
          <p className="document-note">
            The document has changed, or shows the passage in other words. The excerpt:
          </p>
          <Excerpt excerpt={excerpt} />
        </>
      )}
      {(from > 0 || to < text.length) && (
        <p className="document-note">
          <button type="button" className="button small" onClick={() => setWhole(true)}>
            Show all {formats.number(text.length)} characters
          </button>
        </p>
      )}
      <div className="document-body" dir="auto">
        {from > 0 && '…'}
        {passage === undefined ? (
          visible(text.slice(from, to))
        ) : (
          <>
            {visible(text.slice(from, passage.from))}
            <mark ref={mark}>
              <Icon name="quote" />
              {visible(text.slice(passage.from, passage.to))}
            </mark>
            {visible(text.slice(passage.to, to))}
          </>
        )}
        {to < text.length && '…'}
      </div>
    </div>
  )
}
