import { errorMessageOf, exitCodeOf, Interrupted, OutputClosed } from './exit.ts'
import { abortOnSignals, abortWhenClosed } from './interruption.ts'
import { printMessage } from './output.ts'
import { createProgram } from './program.ts'

/** Runs the command line of this process. */
export async function main(): Promise<void> {
  const controller = new AbortController()
  abortOnSignals(controller, process)
  abortWhenClosed(process.stdout, controller)

  try {
    await createProgram(controller.signal).parseAsync()
  } catch (error) {
    const message = errorMessageOf(error)
    if (message !== undefined) printMessage(`rivulet: ${message}`)
    process.exitCode = exitCodeOf(error)
    // Everything is closed. An unread line of output must not keep the process alive.
    if (error instanceof Interrupted || error instanceof OutputClosed) process.exit()
  }
}
