import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** Which process somebody is, or was. */
export interface ProcessIdentity {
  /** Within which process ids mean the same: see {@link thisProcess}. */
  readonly host: string
  readonly pid: number
  /** When it started, in Unix ms. */
  readonly startedAt: number
}

/**
 * This process. Its host is one boot of a machine and, where there are such, one namespace of process ids: containers may
 * share the name of their host, and each has a process 1.
 */
export const thisProcess: ProcessIdentity = {
  host: [hostname(), ...kernelMarks()].join(' '),
  pid: process.pid,
  // The same in every thread, and however the clock is set meanwhile.
  startedAt: Math.round(performance.timeOrigin),
}

/**
 * Whether the process is known to be no more: it was of this host, and its id is free or has gone to `self`. False where
 * that cannot be told from here.
 */
export function isGone({ host, pid, startedAt }: ProcessIdentity, self = thisProcess): boolean {
  if (host !== self.host) return false
  if (pid === self.pid) return startedAt !== self.startedAt
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

function kernelMarks(): readonly string[] {
  if (process.platform !== 'linux') return []
  try {
    return [readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), readlinkSync('/proc/self/ns/pid')]
  } catch {
    // Without them nobody can say whose process ids these are, so they are nobody else's.
    return [randomUUID()]
  }
}
