import type { ReactNode } from 'react'
import { Badge } from '../parts/badge.tsx'
import type { Tone } from '../parts/badge.tsx'
import { words } from '../parts/format.ts'
import type { IconName } from '../parts/icon.tsx'
import { Foreign } from '../parts/foreign.tsx'

const LOOKS: Readonly<Record<string, readonly [tone: Tone, icon: IconName]>> = {
  completed: ['good', 'check'],
  failed: ['bad', 'cross'],
  cancelled: ['quiet', 'off'],
  cancelling: ['quiet', 'off'],
  running: ['busy', 'run'],
  action_required: ['warn', 'question'],
  queued: ['quiet', 'clock'],
}

/** The status of a run. */
export function RunStatusBadge({ status }: { readonly status: string }): ReactNode {
  const [tone, icon] = LOOKS[status] ?? (['quiet', 'question'] as const)
  return (
    <Badge tone={tone} icon={icon}>
      <Foreign>{words(status)}</Foreign>
    </Badge>
  )
}
