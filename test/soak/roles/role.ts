import { closeSync, openSync, readdirSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import type { RoleOrder, RoleReport, RoleSettings } from '../messages.ts'
import { watchTransactions } from './strike.ts'

/** Entries older than this are deleted once every reader has passed them, in ms. */
const MAX_AGE = 1_000

/** Runs a role until SIGTERM: `begin` starts its work and returns what ends it, and with what it fails. */
export async function runRole(
  begin: (log: EventLog, settings: RoleSettings) => Promise<RoleWork> | RoleWork,
): Promise<void> {
  watchTransactions()
  const stopping = new Promise((resolve) => process.once('SIGTERM', resolve))
  const settings: RoleSettings = JSON.parse(process.env['SOAK_ROLE'] ?? '')
  const log = await openLog(sqliteStore(settings.log), { retention: { maxAge: MAX_AGE } })
  const work = await begin(log, settings)
  let hasLostLocks = false
  process.on('message', (order: RoleOrder) => {
    if (!('loseLocks' in order)) return
    hasLostLocks = true
    loseLocks(settings.log)
  })
  const report = () => {
    // A process that has just started may claim its name only now, and would keep its successor away.
    if (hasLostLocks) loseLocks(settings.log)
    process.send?.({ rssMb: process.resourceUsage().maxRSS / 1024, hasLostLocks } satisfies RoleReport)
  }
  const reporting = setInterval(report, 100)
  report()
  // The next process comes up sooner for it; this one may not live to write it at its end.
  flushCompileCache()
  try {
    await Promise.race([stopping, work.failed])
    await work.stop()
    await log.close()
  } catch (error) {
    process.stderr.write(`${String(error)}\n`)
    await log.close().catch(() => {})
    process.exit(1)
  }
  clearInterval(reporting)
  process.disconnect?.()
}

/** Gives up the operating system's locks behind the library's back: POSIX drops them when the process closes the file. */
function loseLocks(log: string): void {
  const lockFiles = readdirSync(dirname(log)).filter((file) => file.startsWith(`${basename(log)}-lock-`))
  for (const file of lockFiles) closeSync(openSync(join(dirname(log), file), 'r'))
}

/** The work of a role. */
export interface RoleWork {
  /** Rejects when the work fails. */
  readonly failed: Promise<unknown>
  stop(): Promise<unknown>
}
