import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'

/** A folder of its own for the test, removed when it is over. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-state-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** A path where nothing is yet. */
export function scratchFile(): string {
  return join(scratchFolder(), 'state.db')
}

/** Another process that runs one of the programs beside the tests. It is killed when the test is over. */
export function startProcess(program: string, ...args: readonly string[]) {
  const child = spawn(
    process.execPath,
    [
      '--conditions=rivulet-source',
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, program),
      ...args,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => code ?? signal)
  return { child, ended, lines: createInterface({ input: child.stdout }) }
}

/** Runs the work as somebody who may not write what the superuser owns. */
export function asOrdinaryUser(work: () => void): void {
  const user = process.geteuid?.()
  if (user !== 0 || process.seteuid === undefined) {
    work()
    return
  }
  process.seteuid(65_534)
  try {
    work()
  } finally {
    process.seteuid(user)
  }
}
