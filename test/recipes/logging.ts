import { pino } from 'pino'
import { createClient } from 'rivulet'
import type { EventLog } from 'rivulet/log'

/** Lines of JSON on stdout. `RIVULET_LOG_LEVEL=debug` adds reconnections without an error, and dropped duplicates. */
export const logger = pino({ level: process.env.RIVULET_LOG_LEVEL ?? 'info' })

/** Logs failures that it handles, such as retries, as warnings. */
export const client = createClient({ logger })

/** Logs each entry once, also over restarts. */
export const logEntries = (log: EventLog) =>
  log.consume('logging', ({ type, source, id, revision }) =>
    logger.info({ type, source, id, revision }, 'recorded'),
  )
