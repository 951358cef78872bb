import type { ReactNode } from 'react'
import { Icon } from './icon.tsx'
import type { IconName } from './icon.tsx'

/** The meaning of a colour. */
export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'quiet'

/** A state as icon and word. The colour adds nothing to the words. */
export function Badge({
  tone,
  icon,
  children,
}: {
  readonly tone: Tone
  readonly icon: IconName
  readonly children: ReactNode
}): ReactNode {
  return (
    <span className={`badge ${tone}`}>
      <Icon name={icon} />
      {children}
    </span>
  )
}
