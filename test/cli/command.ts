import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { MANIFEST } from '../package/build.ts'
import { sharedPackage } from '../package/installed.ts'

/** How a command ended. */
interface Ending {
  /** Exit code, or the name of the signal that ended it. */
  readonly code: number | string | null
  readonly stdout: string
  readonly stderr: string
}

const { path } = await sharedPackage()
const COMMAND = path(MANIFEST.bin['rivulet'] ?? '')

/**
 * Runs the command of the installed package as a child process, with this standard input; with null, it stays open. It is killed
 * when the test ends.
 */
export function rivulet(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input: string | null = '',
) {
  return started([COMMAND, ...args], env, input)
}

/** Runs the command as `npm start` does in the repository, from the sources and beside the packages that are installed there. */
export function rivuletInRepository(args: readonly string[]) {
  return started(['--conditions=rivulet-source', 'src/cli/main.ts', ...args], {}, '')
}

function started(args: readonly string[], env: Readonly<Record<string, string>>, input: string | null) {
  const child = spawn(process.execPath, args, {
    // Without the settings of this machine's user.
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...env },
    stdio: 'pipe',
  })
  if (input !== null) child.stdin.end(input)
  onTestFinished(() => void child.kill('SIGKILL'))
  const stdout = readText(child.stdout)
  const stderr = readText(child.stderr)
  const ended = new Promise<Ending>((resolve) => {
    child.once('close', (code, signal) =>
      resolve({ code: code ?? signal, stdout: stdout(), stderr: stderr() }),
    )
  })
  return {
    child,
    ended,
    /** The first matching line of its output; fails when it ends without one. */
    stdoutLine: (fits: (line: string) => boolean = () => true) => firstLine(child.stdout, fits),
    stderrLine: (fits: (line: string) => boolean = () => true) => firstLine(child.stderr, fits),
  }
}

function readText(stream: Readable): () => string {
  let text = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return () => text
}

function firstLine(stream: Readable, fits: (line: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines = createInterface({ input: stream })
    lines.on('line', (line) => {
      if (fits(line)) resolve(line)
    })
    lines.on('close', () => reject(new Error('it ended without that line')))
  })
}

/** A temporary folder with these documents, removed when the test ends. */
export async function folderOf(documents: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-cli-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await Promise.all(Object.entries(documents).map(([name, text]) => writeFile(join(folder, name), text)))
  return folder
}

export const DOCUMENTS = {
  'battery.md': '# Batteries\n\nA solid state battery has a solid electrolyte.\n',
  'river.md': '# Rivers\n\nA rivulet is a small stream of water.\n',
}

/** Serves {@link DOCUMENTS} with the command, and resolves with the environment that clients of it need. */
export async function serveDocuments(...args: readonly string[]) {
  const docs = await folderOf(DOCUMENTS)
  const service = rivulet(['serve', '--json', '--docs', docs, ...args])
  const { service: printed } = JSON.parse(await service.stdoutLine())
  return { service, printed, env: { RIVULET_BASE_URL: printed.url, RIVULET_API_KEY: printed.api_key } }
}
