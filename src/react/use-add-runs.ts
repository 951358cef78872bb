import { useCallback, useRef, useState } from 'react'
import type { Live } from '../live/live.ts'
import type { AddRunsRequest, AddRunsResponse } from '../protocol/task-group.ts'
import type { ViewShapes } from '../protocol/live.ts'

/** The result of `useAddRuns`. */
export interface UseAddRunsResult {
  /**
   * Adds runs to a group (§4.3). Resolves with the answer, or with undefined when it has failed: see `error`. Unmounting does not
   * abort it, since the runs may have been taken. The function is the same in each rendering.
   */
  readonly addRuns: (group: string, request: AddRunsRequest) => Promise<AddRunsResponse | undefined>
  /** The status of the last call. */
  readonly status: 'idle' | 'pending' | 'success' | 'error'
  /** The answer to the last call. */
  readonly response: AddRunsResponse | undefined
  /** Why the last call has failed: a `LiveError`. */
  readonly error: Error | undefined
}

type AddRunsState = Omit<UseAddRunsResult, 'addRuns'>

const IDLE: AddRunsState = { status: 'idle', response: undefined, error: undefined }

/** Adds runs to groups through the gateway, for grants that allow it. They appear in the group's view. */
export function useAddRuns(live: Pick<Live<ViewShapes>, 'addRuns'>): UseAddRunsResult {
  const [state, setState] = useState(IDLE)
  const calls = useRef(0)
  const addRuns = useCallback(
    async (group: string, request: AddRunsRequest) => {
      const call = ++calls.current
      const update = (next: Partial<AddRunsState>) => {
        if (call === calls.current) setState({ ...IDLE, ...next })
      }
      update({ status: 'pending' })
      try {
        const response = await live.addRuns(group, request)
        update({ status: 'success', response })
        return response
      } catch (error) {
        update({ status: 'error', error: error instanceof Error ? error : new Error(String(error)) })
        return undefined
      }
    },
    [live],
  )
  return { addRuns, ...state }
}
