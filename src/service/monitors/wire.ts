import type { Monitor } from '../../protocol/monitor.ts'
import type { StoredMonitor } from './store.ts'

/** Converts Unix ms to RFC 3339. */
export function toTimestamp(ms: number): string {
  return new Date(ms).toISOString()
}

/** Converts a stored monitor to the form of the interface (§2.1). */
export function toWire({ id, status, request, createdAt, lastRunAt, snapshot }: StoredMonitor): Monitor {
  const { frequency, processor, webhook, metadata } = request
  const common = {
    monitor_id: id,
    status,
    frequency,
    processor,
    created_at: toTimestamp(createdAt),
    ...(lastRunAt !== undefined && { last_run_at: toTimestamp(lastRunAt) }),
    ...(webhook !== undefined && { webhook }),
    ...(metadata !== undefined && { metadata }),
  }
  return request.type === 'snapshot'
    ? {
        type: request.type,
        ...common,
        settings: request.settings,
        output: { latest_snapshot: snapshot ?? null },
      }
    : { type: request.type, ...common, settings: request.settings, output: null }
}
