import type { ReactNode } from 'react'
import { formats, words } from './format.ts'

/** The heading of a list with the number of its shown entries, and buttons that show only those of one status. */
export function StatusFilter({
  title,
  shown,
  statuses,
  only,
  onChange,
}: {
  /** The name of the list's items, in the plural: `Runs`. */
  readonly title: string
  readonly shown: number
  /** The number of entries of each status. With fewer than two statuses there are no buttons. */
  readonly statuses: readonly (readonly [status: string, count: number])[]
  /** The status that is shown; undefined for all. */
  readonly only: string | undefined
  readonly onChange: (only: string | undefined) => void
}): ReactNode {
  return (
    <div className="toolbar">
      <h2>
        {title} <span className="muted">{formats.number(shown)}</span>
      </h2>
      {statuses.length > 1 && (
        <div className="filters" role="group" aria-label={`Show ${title.toLowerCase()} by status`}>
          <button type="button" aria-pressed={only === undefined} onClick={() => onChange(undefined)}>
            All
          </button>
          {statuses.map(([name, count]) => (
            <button key={name} type="button" aria-pressed={only === name} onClick={() => onChange(name)}>
              {words(name)} <span className="count">{formats.number(count)}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  )
}
