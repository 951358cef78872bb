import type { Clock } from './clock.ts'

/** How long to pause when the database fails, in ms of the clock. */
const PAUSE = 5_000

/** Creates an alarm. `startDue` starts the due work, and returns when the next work becomes due; undefined for never. */
export function createAlarm(
  clock: Clock,
  startDue: (now: number) => number | undefined,
  onError: ((error: unknown) => void) | undefined,
) {
  let active = false
  let cancel: (() => void) | undefined

  /** Starts the due work, while the alarm is started. */
  function wake(): void {
    if (!active) return
    cancel?.()
    try {
      const now = clock.now()
      const next = startDue(now)
      cancel = next === undefined ? undefined : clock.schedule(next - now, wake)
    } catch (error) {
      pause(error)
    }
  }

  /** Wakes in 5 s: work whose result cannot be stored would be repeated in a loop. Without `onError`, throws. */
  function pause(error: unknown): void {
    cancel?.()
    cancel = active ? clock.schedule(PAUSE, wake) : undefined
    if (onError === undefined) throw error
    onError(error)
  }

  function start(): void {
    active = true
    wake()
  }

  function stop(): void {
    active = false
    cancel?.()
  }

  return { start, wake, pause, stop }
}
