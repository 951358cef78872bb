import { ArgumentError } from '../../protocol/argument-error.ts'
import { LogPositionError, SnapshotTooLargeError } from '../../log/errors.ts'
import type { Position } from '../../log/store/contract.ts'
import { isObject } from '../../protocol/json.ts'
import type { LiveSnapshot, ViewRequest } from '../../protocol/live.ts'
import type { Access } from '../access/access.ts'
import type { FollowedView } from '../feed/followed-view.ts'
import type { Scope } from '../feed/view-rows.ts'
import { GAPS_KEY } from '../feed/view-process.ts'

/** The number of states that are read at once. */
const PAGE = 500

/** Maximum number of rows of a view, and the length of their states as JSON, in characters. */
const MAX_ROWS = 100_000
const MAX_LENGTH = 64 * 1024 * 1024

/** How often a snapshot is begun again that was overtaken. */
const ATTEMPTS = 5

/**
 * The rows of views as an access sees them. Rejects with an ArgumentError for a view that it may not see, and with a
 * SnapshotTooLargeError.
 */
export async function snapshotOf(
  views: ReadonlyMap<string, FollowedView>,
  access: Access,
  wanted: readonly ViewRequest[],
): Promise<LiveSnapshot> {
  if (!Array.isArray(wanted) || wanted.some((each: unknown) => !isObject(each))) {
    throw new ArgumentError('views', 'an array of { view, params }', wanted)
  }
  const snapshot: Record<string, LiveSnapshot[string]> = {}
  for (const { view: name, params = {} } of wanted) {
    const view = views.get(name)
    if (view === undefined || !access.maySeeView(name)) {
      throw new ArgumentError('views', 'views that the grant names', name)
    }
    const scope = view.scope(params)
    if (scope === undefined) throw new ArgumentError('params', `the params of the view ${name}`, params)
    const source = view.sourceOfScope(scope)
    if (source !== undefined && !access.maySeeSource(source)) {
      throw new ArgumentError('params', `params of a source that the grant names`, params)
    }
    snapshot[scope.address] = await viewSnapshot(view, scope, access)
  }
  return snapshot
}

async function viewSnapshot(view: FollowedView, scope: Scope, access: Access): Promise<LiveSnapshot[string]> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { states, position } = await readStates(view, scope)
      const rows = Array.from(states)
        .filter(([key]) => key !== GAPS_KEY && access.maySeeSource(view.sourceOf(key)))
        .map(([key, state]) => [key, access.omit(JSON.parse(state))] as const)
      return { rows, position }
    } catch (error) {
      // The view was built again meanwhile, or removed very many rows.
      if (!(error instanceof LogPositionError) || attempt === ATTEMPTS) throw error
    }
  }
}

/** The states at one moment: read by key, then updated with the changes that came meanwhile. */
async function readStates(
  { states: stored, reader, name }: FollowedView,
  { below, own: ownKey }: Scope,
): Promise<{ readonly states: ReadonlyMap<string, string>; readonly position: Position }> {
  const states = new Map<string, string>()
  let length = 0
  const set = (key: string, state: string | null) => {
    length += (state?.length ?? 0) - (states.get(key)?.length ?? 0)
    if (state === null) states.delete(key)
    else states.set(key, state)
    if (states.size > MAX_ROWS || length > MAX_LENGTH) throw new SnapshotTooLargeError(name, MAX_ROWS)
  }
  const begin = await stored.end(reader)
  if (ownKey !== undefined) {
    const [own] = await stored.states(reader, [ownKey])
    if (typeof own === 'string') set(ownKey, own)
  }
  for (let after: string | undefined; ;) {
    const page = await stored.range(reader, { prefix: below, after, since: begin, limit: PAGE })
    for (const { key, state } of page.states) set(key, state)
    if (page.isEnd) break
    after = page.states.at(-1)?.key
  }
  for (let position = begin; ;) {
    const page = await stored.changes(reader, position, { limit: PAGE })
    for (const { key, state } of page.changes) {
      if (key === ownKey || key.startsWith(below)) set(key, state)
    }
    position = page.position
    if (page.isEnd) return { states, position }
  }
}
