/**
 * Hooks over the views of `rivulet/live`.
 *
 * @module rivulet/react
 */
export { prefetchView } from './first-rows.ts'
export { useStatus } from './use-status.ts'
export { useSuspenseView } from './use-suspense-view.ts'
export { useView } from './use-view.ts'
