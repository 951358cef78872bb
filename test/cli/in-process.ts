import { Readable, Writable } from 'node:stream'
import { errorMessageOf, exitCodeOf } from '../../src/cli/exit.ts'
import { printMessage } from '../../src/cli/output.ts'
import { createProgram } from '../../src/cli/program.ts'

/** How a command ended: its exit code, and what it has printed. */
interface Ending {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** The command before, since the streams and the variables are those of this process. */
let before: Promise<unknown> = Promise.resolve()

/**
 * Runs a command with these variables and this standard input, without the start of a process, which takes most of its time. Commands
 * run one after the other. The log of the command is off, since it does not go through `process.stderr`.
 */
export function inProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): Promise<Ending> {
  const ended = before.then(() => run(args, env, input))
  before = ended.catch(() => undefined)
  return ended
}

async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input: string,
): Promise<Ending> {
  const stdout = new Printed()
  const stderr = new Printed()
  const variables = process.env
  const restore = withStreams({ stdout, stderr, stdin: Readable.from([input]) })
  // Without the settings of this machine's user.
  process.env = { PATH: variables['PATH'], RIVULET_LOG_LEVEL: 'silent', ...env }
  let code = 0
  try {
    await createProgram(new AbortController().signal).parseAsync(args, { from: 'user' })
  } catch (error) {
    const message = errorMessageOf(error)
    if (message !== undefined) printMessage(`rivulet: ${message}`)
    code = exitCodeOf(error)
  } finally {
    process.env = variables
    restore()
  }
  return { code, stdout: stdout.text, stderr: stderr.text }
}

/** Replaces streams of this process. Returns what puts them back. */
function withStreams(streams: Readonly<Record<string, Readable | Writable>>): () => void {
  const replaced = Object.keys(streams).map((name) => [
    name,
    Object.getOwnPropertyDescriptor(process, name) ?? {},
  ])
  for (const [name, value] of Object.entries(streams)) {
    Object.defineProperty(process, name, { value, configurable: true })
  }
  return () => void Object.defineProperties(process, Object.fromEntries(replaced))
}

/** Keeps what is written to it. */
class Printed extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, written: () => void): void {
    this.text += chunk.toString()
    written()
  }
}
