import type { DatabaseSync } from 'node:sqlite'
import { systemClock, type Clock } from './clock.ts'

/** How far ahead time is reserved in the database, in ms of real time. */
const RESERVED = 2_000

/** A clock that is stored, and how to close it. */
export interface PersistentClock {
  readonly clock: Clock
  /** Stores the time for the next start. */
  close(): void
}

/**
 * The system clock, `speed` times as fast, which continues after a restart instead of going back. While it runs, the
 * database holds a later time, so that this is true after a crash too.
 *
 * @param onError Called when a time could not be stored; it is retried a second later.
 */
export function persistentClock(
  database: DatabaseSync,
  speed: number,
  onError: (error: unknown) => void,
): PersistentClock {
  database.exec(`
    CREATE TABLE IF NOT EXISTS service_clock (only INTEGER PRIMARY KEY CHECK (only = 1), time INTEGER NOT NULL) STRICT;
  `)
  const read = database.prepare('SELECT time FROM service_clock')
  const write = database.prepare(
    'INSERT INTO service_clock VALUES (1, ?) ON CONFLICT DO UPDATE SET time = excluded.time',
  )
  const clock = systemClock(speed, Math.max(Date.now(), Number(read.get()?.['time'] ?? 0)))
  const store = (time: number) => {
    try {
      write.run(time)
    } catch (error) {
      onError(error)
    }
  }
  const reserve = () => store(clock.now() + RESERVED * speed)
  // Real time is not stored: it continues while the service is down.
  const timer = speed > 1 ? setInterval(reserve, RESERVED / 2) : undefined
  timer?.unref()
  if (speed > 1) reserve()
  return {
    clock,
    close() {
      clearInterval(timer)
      store(clock.now())
    },
  }
}
