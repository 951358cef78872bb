import type { UpdateMonitorRequest } from '../../protocol/monitor.ts'
import { parseFrequency } from '../../protocol/limits.ts'
import type { StoredMonitor } from './store.ts'
import type { MonitorRequest } from './request.ts'

/** Which changes a monitor refuses. */
export interface RefusedField {
  readonly field: 'type' | 'settings'
  readonly reason: string
}

/** The first field that cannot be updated; undefined if all can. */
export function refusedField(
  request: MonitorRequest,
  changes: UpdateMonitorRequest,
): RefusedField | undefined {
  if (request.type === 'snapshot') {
    if (changes.settings !== undefined)
      return { field: 'settings', reason: 'Monitors of type snapshot have no settings to update' }
    if (changes.type !== undefined)
      return { field: 'type', reason: 'The type of a monitor cannot be changed' }
  }
  return changes.settings !== undefined && changes.type === undefined
    ? { field: 'type', reason: 'Field required beside settings' }
    : undefined
}

/** The monitor's request with the given fields replaced, each as a whole. Null removes a webhook or metadata. */
export function updatedRequest(request: MonitorRequest, changes: UpdateMonitorRequest): MonitorRequest {
  const { frequency = request.frequency, webhook, metadata } = changes
  const { webhook: oldWebhook, metadata: oldMetadata, ...kept } = request
  const newWebhook = webhook === undefined ? oldWebhook : webhook
  const newMetadata = metadata === undefined ? oldMetadata : metadata
  const updated = {
    ...kept,
    frequency,
    ...(newWebhook != null && { webhook: newWebhook }),
    ...(newMetadata != null && { metadata: newMetadata }),
  }
  const advanced = changes.settings?.advanced_settings
  if (updated.type === 'snapshot' || advanced === undefined) return updated
  return { ...updated, settings: { ...updated.settings, advanced_settings: advanced } }
}

/**
 * The next scheduled time with another frequency: the time of the last scheduled execution plus the new frequency. It may be in
 * the past; then the monitor is due. An execution that is due already stays so.
 */
export function rescheduled({ nextRunAt, request }: StoredMonitor, frequency: string, now: number): number {
  const [before, after] = [request.frequency, frequency].map((given) => parseFrequency(given))
  if (before === undefined || after === undefined) throw new Error(`no valid frequency: ${frequency}`)
  if (nextRunAt === undefined || nextRunAt <= now) return nextRunAt ?? now
  return nextRunAt - before + after
}
