import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { rowPath } from 'rivulet/live'
import type { ViewSnapshot } from 'rivulet/live'
import { useMore } from './more.tsx'
import { MissedNotice, useInstead } from './view-rows.tsx'
import { Foreign, visible } from './foreign.tsx'

/** The rows of a view as cards, in an order, the first ones at once. */
export function CardList<Row>({
  snapshot,
  what,
  compare,
  empty,
  limit = 50,
  children,
}: {
  readonly snapshot: ViewSnapshot<Row>
  /** The name of the rows, in the plural. */
  readonly what: string
  readonly compare: (a: Row, b: Row) => number
  /** Shown if there are no rows. */
  readonly empty: ReactNode
  readonly limit?: number | undefined
  /** The card of a row. `id` is the first part of its path, which the address of its page has. */
  readonly children: (id: string, row: Row) => ReactNode
}): ReactNode {
  const { rows, gaps } = snapshot
  const sorted = useMemo(
    () =>
      [...rows]
        .map(([key, row]) => ({ id: rowPath(key)[0] ?? key, row }))
        .toSorted((a, b) => compare(a.row, b.row)),
    [rows, compare],
  )
  const { shown, more } = useMore(sorted, limit)
  const instead = useInstead(snapshot, what)
  if (instead !== undefined) return instead
  return (
    <>
      <MissedNotice gaps={gaps} />
      {sorted.length === 0 ? (
        empty
      ) : (
        <ul className="cards">{shown.map(({ id, row }) => children(id, row))}</ul>
      )}
      {more}
    </>
  )
}

/** A card of a list: a link with a name, content beside it, and more below. */
export function Card({
  href,
  isSelected,
  title,
  isId = false,
  side,
  children,
}: {
  readonly href: string
  readonly isSelected: boolean
  readonly title: string
  /** Whether the title is an id, which is shown in a font of equal widths. */
  readonly isId?: boolean
  readonly side: ReactNode
  readonly children?: ReactNode
}): ReactNode {
  return (
    <li>
      <a className="card" href={href} aria-current={isSelected ? 'true' : undefined}>
        <span className="card-line">
          <span className={isId ? 'card-title mono' : 'card-title'} title={visible(title)}>
            <Foreign>{title}</Foreign>
          </span>
          {side}
        </span>
        {children}
      </a>
    </li>
  )
}
