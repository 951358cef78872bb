import { useState } from 'react'
import type { ReactNode } from 'react'
import { formats, words } from '../parts/format.ts'
import { ExternalLink } from '../parts/external-link.tsx'
import { linkAddress } from './address.ts'
import { isObject } from './evidence.ts'
import { Foreign, visible } from '../parts/foreign.tsx'

/** Characters of a text, and items of a list, that are shown at first. */
const TEXT = 1_500
const ITEMS = 20

/** Deeper objects are shown as JSON. */
const DEPTH = 4

/** A JSON value as a reader would write it. Its texts stay texts, whatever they contain. */
export function Value({ value, depth = 0 }: { readonly value: unknown; readonly depth?: number }): ReactNode {
  if (value === null || value === undefined || value === '') return <span className="muted">none</span>
  if (typeof value === 'string') return <Text text={value} />
  if (typeof value !== 'object') return <span className="figure">{String(value)}</span>
  if (depth >= DEPTH) return <code className="json">{visible(JSON.stringify(value))}</code>
  if (Array.isArray(value)) return <Items items={value} depth={depth} />
  if (!isObject(value)) return null
  return (
    <dl className="nested">
      {Object.entries(value).map(([name, each]) => (
        <div key={name}>
          <dt>
            <Foreign>{words(name)}</Foreign>
          </dt>
          <dd>
            <Value value={each} depth={depth + 1} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Items({ items, depth }: { readonly items: readonly unknown[]; readonly depth: number }): ReactNode {
  const [isWhole, setWhole] = useState(false)
  if (items.length === 0) return <span className="muted">none</span>
  const shown = isWhole ? items : items.slice(0, ITEMS)
  return (
    <>
      <ul className="items">
        {shown.map((item, index) => (
          <li key={index}>
            <Value value={item} depth={depth + 1} />
          </li>
        ))}
      </ul>
      {shown.length < items.length && (
        <button type="button" className="button small" onClick={() => setWhole(true)}>
          Show all {formats.number(items.length)}
        </button>
      )}
    </>
  )
}

/** A text of any length, in its own direction. */
export function Text({ text }: { readonly text: string }): ReactNode {
  const [isWhole, setWhole] = useState(false)
  if (!/\s/.test(text) && linkAddress(text) !== undefined) {
    return (
      <ExternalLink url={text}>
        <Foreign>{text}</Foreign>
      </ExternalLink>
    )
  }
  const isCut = !isWhole && text.length > TEXT * 1.2
  return (
    <>
      <span className="text" dir="auto">
        {visible(isCut ? `${text.slice(0, TEXT).toWellFormed()}…` : text)}
      </span>
      {isCut && (
        <button type="button" className="button small" onClick={() => setWhole(true)}>
          Show all {formats.number(text.length)} characters
        </button>
      )}
    </>
  )
}
