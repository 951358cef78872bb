import { complaint, exitCodeOf, Interrupted } from './exit.ts'
import { abortOnSignals, abortWhenClosed } from './interruption.ts'
import { createProgram } from './program.ts'

/** Runs the command that the process was started with. */
export async function main(): Promise<void> {
  const controller = new AbortController()
  abortOnSignals(controller, process)
  abortWhenClosed(process.stdout, controller)

  try {
    await createProgram(controller.signal).parseAsync()
  } catch (error) {
    const message = complaint(error)
    if (message !== undefined) process.stderr.write(`rivulet: ${message}\n`)
    process.exitCode = exitCodeOf(error)
    // All is closed by now. A line that is not read must not keep the process alive.
    if (error instanceof Interrupted) process.exit()
  }
}
