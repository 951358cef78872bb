/**
 * A page over an event log.
 *
 * @module rivulet/dashboard
 */
export { createDashboard } from './dashboard.ts'
export type { Dashboard, DashboardOptions } from './dashboard.ts'
export type { DashboardDocument, FindDocument } from './documents.ts'
