import { useState } from 'react'
import type { ReactNode } from 'react'
import { formats } from './format.ts'

/** The first items of a long list, and a button for more of them. So a list of thousands costs only as much as the shown part. */
export function useMore<Item>(
  items: readonly Item[],
  step: number,
): { readonly shown: readonly Item[]; readonly more: ReactNode } {
  const [limit, setLimit] = useState(step)
  if (items.length <= limit) return { shown: items, more: null }
  const next = Math.min(step, items.length - limit)
  return {
    shown: items.slice(0, limit),
    more: (
      <div className="more">
        <button type="button" className="button" onClick={() => setLimit(limit + step)}>
          Show {formats.number(next)} more
        </button>
        <span className="muted">
          {formats.number(limit)} of {formats.number(items.length)}
        </span>
      </div>
    ),
  }
}
