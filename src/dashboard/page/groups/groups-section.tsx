import type { ReactNode } from 'react'
import { ListAndDetail } from '../parts/list-and-detail.tsx'
import { GroupDetail } from './group-detail.tsx'
import { GroupList } from './group-list.tsx'

/** All task groups, and one of them. */
export function GroupsSection({
  group,
  run,
}: {
  readonly group: string | undefined
  readonly run: string | undefined
}): ReactNode {
  return (
    <ListAndDetail
      title="Task groups"
      back="#/groups"
      list={<GroupList selected={group} />}
      detail={group === undefined ? undefined : <GroupDetail key={group} group={group} run={run} />}
      hint="Choose a group to see its runs, their outputs and the evidence for each field."
    />
  )
}
