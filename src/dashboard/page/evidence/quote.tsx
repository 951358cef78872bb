import { createContext, useContext } from 'react'
import type { ReactNode } from 'react'
import { ExternalLink } from '../parts/external-link.tsx'
import { siteOf } from './address.ts'
import { oneLine } from './evidence.ts'
import type { Source } from './evidence.ts'
import { Foreign, visible } from '../parts/foreign.tsx'

/** A passage whose document a reader wants to see. */
export interface Quotation {
  readonly url: string
  readonly title: string | undefined
  readonly excerpt: string
}

/** Opens the document of a quotation. */
export const OpenQuotation = createContext<(quotation: Quotation) => void>(() => {})

/** Excerpts of a source that are shown at once. */
const EXCERPTS = 3

/** A source with its excerpts, each of which opens its document. */
export function SourceQuotes({ source }: { readonly source: Source }): ReactNode {
  const { url, title, excerpts } = source
  return (
    <>
      {excerpts.slice(0, EXCERPTS).map((excerpt, index) => (
        <Quote key={index} quotation={{ url, title, excerpt }} />
      ))}
      <p className="source">
        <ExternalLink url={url}>
          <Foreign>{oneLine(title ?? url, 160)}</Foreign>
        </ExternalLink>
        {title !== undefined && title !== siteOf(url) && (
          <span className="site">
            <Foreign>{siteOf(url)}</Foreign>
          </span>
        )}
        {excerpts.length > EXCERPTS && (
          <span className="muted">{excerpts.length - EXCERPTS} more excerpts</span>
        )}
      </p>
    </>
  )
}

/** A passage that opens its document. */
export function Quote({ quotation }: { readonly quotation: Quotation }): ReactNode {
  const open = useContext(OpenQuotation)
  return (
    <button type="button" className="quote" onClick={() => open(quotation)}>
      <span className="quote-text" dir="auto">
        {visible(oneLine(quotation.excerpt, 600))}
      </span>
      <span className="visually-hidden"> Open the passage in its document</span>
    </button>
  )
}
