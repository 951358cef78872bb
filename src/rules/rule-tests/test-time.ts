import { parseDuration } from '../../protocol/duration.ts'

const DAY = 86_400_000

/** A time of a test in Unix ms: since the start, or in RFC 3339. NaN for one that does not exist. */
export function testTime(text: string | number, start: number): number {
  const since = parseDuration(text)
  return since === undefined ? Date.parse(String(text)) : start + since
}

/** A time since the start, as tests write it: `24h10m`. The date if it is before the start. */
export function sinceStart(at: number, start: number): string {
  const ms = at - start
  if (ms < 0) return new Date(at).toISOString()
  if (ms === 0) return '0s'
  const days = ms >= 2 * DAY ? Math.floor(ms / DAY) : 0
  const parts = [
    [days, 'd'],
    [Math.floor((ms - days * DAY) / 3_600_000), 'h'],
    [Math.floor(ms / 60_000) % 60, 'm'],
    [Math.floor(ms / 1_000) % 60, 's'],
    [ms % 1_000, 'ms'],
  ] as const
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join('')
}
