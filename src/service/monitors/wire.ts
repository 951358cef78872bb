import type { Monitor } from '../../protocol/monitor.ts'
import type { StoredMonitor } from './store.ts'

/** Converts Unix ms to RFC 3339. */
export function toTimestamp(ms: number): string {
  return new Date(ms).toISOString()
}

/** Converts a stored monitor to that of the interface (§2.1). */
export function toWire({ id, status, request, createdAt, lastRunAt }: StoredMonitor): Monitor {
  const { type, frequency, processor, settings, webhook, metadata } = request
  return {
    type,
    monitor_id: id,
    status,
    frequency,
    processor,
    created_at: toTimestamp(createdAt),
    ...(lastRunAt !== undefined && { last_run_at: toTimestamp(lastRunAt) }),
    settings,
    ...(webhook !== undefined && { webhook }),
    ...(metadata !== undefined && { metadata }),
    output: null,
  }
}
