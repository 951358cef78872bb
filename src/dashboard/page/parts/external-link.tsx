import type { ReactNode } from 'react'
import { linkAddress } from '../evidence/address.ts'
import { Icon } from './icon.tsx'

/** A link to a page elsewhere; only the text if the address is no http or https. */
export function ExternalLink({
  url,
  children,
}: {
  readonly url: string
  readonly children: ReactNode
}): ReactNode {
  const address = linkAddress(url)
  if (address === undefined) return <span className="foreign">{children}</span>
  return (
    <a className="foreign" href={address} target="_blank" rel="noopener noreferrer">
      {children}
      <Icon name="out" />
      <span className="visually-hidden"> (opens in a new tab)</span>
    </a>
  )
}
