import { join, resolve } from 'node:path'
import { areShared, sharedBuild } from './builds.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** The programs that tests start as processes, again and again. */
export const PROGRAMS = [
  'examples/pipeline/service.js',
  'test/e2e/killed-service-process.ts',
  'test/e2e/recording-process.ts',
  'test/gateway/soak/gateway-process.ts',
  'test/gateway/soak/recorder-process.ts',
  'test/log/exactly-once-process.ts',
  'test/log/sqlite/log-process.ts',
  'test/log/sqlite/receiving-process.ts',
  'test/rules/run/killed-process.ts',
  'test/service/database-process.ts',
  'test/service/find-all/service-process.ts',
  'test/service/kills/killed-process.ts',
  'test/soak/nats/worker.ts',
  'test/soak/roles/billing.ts',
  'test/soak/roles/board.ts',
  'test/soak/roles/ledger.ts',
  'test/soak/roles/receiver.ts',
  'test/soak/roles/recorder.ts',
] as const
type Program = (typeof PROGRAMS)[number]

/**
 * Resolves to the file of each program, for `fork`. In a run of tests, it is a bundle of the program and all that it imports, which
 * starts in a third of the time; elsewhere it is the source.
 */
export async function programFiles(): Promise<(program: Program) => string> {
  if (!areShared) return sourceFile
  const folder = await sharedBuild('programs')
  return (program) => join(folder, `${bundledName(program)}.js`)
}

/** The source of a program, to start it with a mutant, which replaces text of sources. */
export function sourceFile(program: Program): string {
  return join(ROOT, program)
}

/** The path of a program with dashes, since all files of the bundle are in one folder. */
export function bundledName(program: Program): string {
  return program.slice(0, -'.ts'.length).replaceAll('/', '-')
}
