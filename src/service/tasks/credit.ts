import { problem } from '../http/problem.ts'
import type { TaskStore } from './task-store.ts'

/** When to ask again, in s. A credit is free again as soon as a run ends, which is not known beforehand. */
const RETRY_AFTER = '1'

/** Responds with 402 unless there is a credit for each of `count` new runs besides the active ones. */
export function requireCredit(store: TaskStore, credit: number, count: number): void {
  if (credit === Infinity) return
  const reserved = store.active()
  if (reserved + count <= credit) return
  const message = `Not enough credit: ${count} needed, and ${Math.max(0, credit - reserved)} of ${credit} are free`
  throw problem(402, message, { credit, reserved, needed: count }, { 'retry-after': RETRY_AFTER })
}
