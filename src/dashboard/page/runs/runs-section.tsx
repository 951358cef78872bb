import type { ReactNode } from 'react'
import { ListAndDetail } from '../parts/list-and-detail.tsx'
import { RunDetail } from './run-detail.tsx'
import { RunList } from './run-list.tsx'

/** All runs without a group, and one of them. */
export function RunsSection({ run }: { readonly run: string | undefined }): ReactNode {
  return (
    <ListAndDetail
      title="Runs without a group"
      back="#/runs"
      list={<RunList selected={run} />}
      detail={run === undefined ? undefined : <RunDetail key={run} run={run} />}
      hint="Choose a run to see its output and the evidence for each field."
    />
  )
}
