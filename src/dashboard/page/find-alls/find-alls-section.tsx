import type { ReactNode } from 'react'
import { ListAndDetail } from '../parts/list-and-detail.tsx'
import { FindAllDetail } from './find-all-detail.tsx'
import { FindAllList } from './find-all-list.tsx'

/** All FindAll runs, and the candidates of one of them. */
export function FindAllsSection({ findAll }: { readonly findAll: string | undefined }): ReactNode {
  return (
    <ListAndDetail
      title="FindAll runs"
      back="#/find-alls"
      list={<FindAllList selected={findAll} />}
      detail={findAll === undefined ? undefined : <FindAllDetail key={findAll} findAll={findAll} />}
      hint="Choose a run to see its candidates and the evidence for each condition."
    />
  )
}
