import type { DatabaseSync } from 'node:sqlite'
import { systemClock, type Clock } from './clock.ts'

/** How far ahead time is reserved, in ms of real time. */
const RESERVED = 2_000

/** A clock, and what it needs done at the end. */
export interface LastingClock {
  readonly clock: Clock
  /** Keeps the time for the next start. */
  close(): void
}

/**
 * The machine's time, `speed` times as fast, which never falls back behind what the database was written at: a service
 * that ran ahead begins again where it was. While it runs, a later time is on record, so that this holds for a crash too.
 *
 * @param onError hears when a time could not be recorded; it is tried again a second later.
 */
export function lastingClock(
  database: DatabaseSync,
  speed: number,
  onError: (error: unknown) => void,
): LastingClock {
  database.exec(`
    CREATE TABLE IF NOT EXISTS service_clock (only INTEGER PRIMARY KEY CHECK (only = 1), time INTEGER NOT NULL) STRICT;
  `)
  const read = database.prepare('SELECT time FROM service_clock')
  const write = database.prepare(
    'INSERT INTO service_clock VALUES (1, ?) ON CONFLICT DO UPDATE SET time = excluded.time',
  )
  const clock = systemClock(speed, Math.max(Date.now(), Number(read.get()?.['time'] ?? 0)))
  const record = (time: number) => {
    try {
      write.run(time)
    } catch (error) {
      onError(error)
    }
  }
  const reserve = () => record(clock.now() + RESERVED * speed)
  // Real time needs no record: it goes on while the service is away.
  const timer = speed > 1 ? setInterval(reserve, RESERVED / 2) : undefined
  timer?.unref()
  if (speed > 1) reserve()
  return {
    clock,
    close() {
      clearInterval(timer)
      record(clock.now())
    },
  }
}
