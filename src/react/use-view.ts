import type { LiveView, ViewSnapshot } from '../live/live.ts'
import { shallowEqual } from './shallow-equal.ts'
import { useSelection } from './use-selection.ts'

/**
 * The rows of a view, kept up to date while the component is mounted, with the view's status. It renders again when any of them
 * changes, at most once a frame.
 *
 * ```ts
 * import type { Live } from 'rivulet/live'
 * import { useView } from 'rivulet/react'
 *
 * declare const live: Live<{ group: { params: readonly ['group']; row?: { kind: string } } }>
 *
 * function useRuns(group: string) {
 *   const { rows, ready } = useView(live.view('group', { group }))
 *   return ready ? [...rows.values()].filter(({ kind }) => kind === 'run') : undefined
 * }
 * ```
 */
export function useView<Row>(view: LiveView<Row>): ViewSnapshot<Row>
/**
 * The result of `selector` for a view's snapshot. The component renders again only when the result changes.
 *
 * `selector` may be an inline function. Its result is compared by `isEqual`, by default as the same value, or an array or a
 * plain object of the same values. An error that it throws is thrown by the component.
 *
 * ```ts
 * import type { LiveView } from 'rivulet/live'
 * import { useView } from 'rivulet/react'
 *
 * const useRow = <Row>(view: LiveView<Row>, key: string) => useView(view, ({ rows }) => rows.get(key))
 * ```
 */
export function useView<Row, Selected>(
  view: LiveView<Row>,
  selector: (snapshot: ViewSnapshot<Row>) => Selected,
  isEqual?: (a: Selected, b: Selected) => boolean,
): Selected
export function useView(
  view: LiveView<unknown>,
  selector: (snapshot: ViewSnapshot<unknown>) => unknown = whole,
  isEqual: (a: unknown, b: unknown) => boolean = shallowEqual,
): unknown {
  return useSelection(view, selector, isEqual)
}

/** The selector of a hook without one. */
export function whole<Snapshot>(snapshot: Snapshot): Snapshot {
  return snapshot
}
