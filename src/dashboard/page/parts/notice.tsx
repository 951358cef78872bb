import type { ReactNode } from 'react'
import { Icon } from './icon.tsx'
import type { IconName } from './icon.tsx'

/** Shown instead of something that is missing: why it is missing, and what to do about it. */
export function Notice({
  icon,
  title,
  children,
}: {
  readonly icon: IconName
  readonly title: string
  readonly children?: ReactNode
}): ReactNode {
  return (
    <div className="notice">
      <Icon name={icon} />
      <p className="notice-title">{title}</p>
      {children !== undefined && <div className="notice-text">{children}</div>}
    </div>
  )
}

/** Shown instead of rows that have not come yet. */
export function Loading({ what, rows = 4 }: { readonly what: string; readonly rows?: number }): ReactNode {
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">Loading {what}</span>
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} className="bone" />
      ))}
    </div>
  )
}
