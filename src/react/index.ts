/**
 * Hooks over the views of `rivulet/live`.
 *
 * @module rivulet/react
 */
export { prefetchView } from './first-rows.ts'
export { inlineSnapshot } from './inline-snapshot.ts'
export { LiveInspector } from './live-inspector.ts'
export type { LiveInspectorProps } from './live-inspector.ts'
export { useAddRuns } from './use-add-runs.ts'
export type { UseAddRunsResult } from './use-add-runs.ts'
export { useSearch } from './use-search.ts'
export type { UseSearchOptions, UseSearchResult } from './use-search.ts'
export { useStatus } from './use-status.ts'
export { useSuspenseView } from './use-suspense-view.ts'
export { useView } from './use-view.ts'
