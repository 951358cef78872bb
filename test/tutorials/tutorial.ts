import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import MarkdownIt from 'markdown-it'
import { onTestFinished } from 'vitest'
import { ROOT } from '../package/build.ts'
import { sharedPackage } from '../package/installed.ts'

/** A tutorial, and what a program cannot read from its page. */
interface Tutorial {
  /** The page within docs/tutorials. */
  readonly page: string
  /** The folder that the reader makes and works in. */
  readonly folder: string
  /** The port of the page. Another one is used, since other programs may listen on it. */
  readonly port: string
  /** Sees what the page shows of an output. By default, the terminal of the last commands must show it. */
  readonly sees?: (output: string, terminal: Terminal) => Promise<unknown>
  /** Called when a file is saved. What comes next in the page is done after it. */
  readonly saved?: (file: string, port: string) => Promise<void>
}

/** Commands that run until Ctrl-C. */
const RUNNING = /rivulet serve|node record\.ts|rules run|node server\.js/

/** Follows a page literally, until its end or the first step that fails. Returns how many outputs it has seen. */
export async function follow({ page, folder, port, sees, saved }: Tutorial): Promise<number> {
  const parent = await mkdtemp(join(tmpdir(), 'rivulet-tutorial-'))
  onTestFinished(() => rm(parent, { recursive: true, force: true, maxRetries: 5 }))
  const { folder: installed } = await sharedPackage()
  const own = await freePort()
  await using stack = new AsyncDisposableStack()
  const terminals = new Map<number, Terminal>()
  const terminalOf = (number: number): Terminal => {
    const terminal = terminals.get(number) ?? stack.use(new Terminal(parent, installed))
    terminals.set(number, terminal)
    return terminal
  }
  let terminal = terminalOf(1)
  let outputs = 0
  for (const step of stepsOf(join(ROOT, 'docs/tutorials', page))) {
    if (step.kind === 'interrupt') {
      await terminalOf(step.terminal).interrupt()
      continue
    }
    const text = step.text.replaceAll(port, own)
    if (step.kind === 'file') {
      await save(join(parent, folder, step.file), text)
      await saved?.(step.file, own)
    } else if (step.kind === 'output') {
      outputs += 1
      await (sees === undefined ? terminal.shows(text) : sees(text, terminal))
    } else {
      terminal = terminalOf(step.terminal)
      if (RUNNING.test(text)) terminal.start(text)
      else await terminal.type(text)
    }
  }
  return outputs
}

/** A step of a tutorial: what its reader types, saves, or expects to see, or a terminal in which they press Ctrl-C. */
type Step =
  | { readonly kind: 'commands'; readonly terminal: number; readonly text: string }
  | { readonly kind: 'file'; readonly file: string; readonly text: string }
  | { readonly kind: 'output'; readonly text: string }
  | { readonly kind: 'interrupt'; readonly terminal: number }

/**
 * The steps of a page, in order: a `sh` block names its terminal in its first line, a `text` block is output, and the sentence before any other block
 * names its file. "Press Ctrl-C in terminal 2" is a step too.
 */
function stepsOf(page: string): Step[] {
  const tokens = new MarkdownIt().parse(readFileSync(page, 'utf8'), {})
  return tokens.flatMap((token, index): Step[] => {
    const text = token.content
    if (token.type === 'inline') {
      const [, interrupted] = /Press Ctrl-C in terminal (\d)/.exec(text) ?? []
      return interrupted === undefined ? [] : [{ kind: 'interrupt', terminal: Number(interrupted) }]
    }
    if (token.type !== 'fence') return []
    if (token.info === 'text') return [{ kind: 'output', text }]
    if (token.info === 'sh') {
      const [, terminal] = /^# Terminal (\d)\n/.exec(text) ?? []
      if (terminal === undefined) throw new TypeError(`commands without a terminal: ${text}`)
      return [{ kind: 'commands', terminal: Number(terminal), text }]
    }
    const [, file] = /Save this as `([^`]+)`:$/.exec(tokens[index - 2]?.content ?? '') ?? []
    if (file === undefined) throw new TypeError(`a block without a file: ${text}`)
    return [{ kind: 'file', file, text }]
  })
}

/**
 * `npm install` copies the package and links those that the tests have installed, in place of a download. It refuses a name that they have not.
 * Ctrl-C ends the program in the foreground, not the shell. A command that fails is remembered until the block ends.
 */
const PRELUDE = `
npm() {
  if [ "$1" != install ]; then command npm "$@"; return; fi
  shift
  cp -R "$INSTALLED/node_modules" .
  for name in "$@"; do
    [ -e "node_modules/$name" ] || ln -s "$MODULES/$name" "node_modules/$name"
    [ -e "node_modules/$name" ] || { echo "no package $name"; return 1; }
  done
  chmod +x node_modules/rivulet/dist/src/cli/main.js
  mkdir -p node_modules/.bin
  ln -s ../rivulet/dist/src/cli/main.js node_modules/.bin/rivulet
}
trap : INT
trap 'failed=$?' ERR
`

/** A shell in which the commands of a tutorial are typed. Its disposal ends all that runs in it. */
class Terminal implements AsyncDisposable {
  readonly #shell
  #output = ''
  #seen = 0
  #typed = 0
  readonly #listeners = new Set<() => void>()

  /** @param installed A folder in which the packages are installed. */
  constructor(cwd: string, installed: string) {
    const { RIVULET_BASE_URL: _url, RIVULET_API_KEY: _key, ...env } = process.env
    const PATH = `${dirname(process.execPath)}${delimiter}${env['PATH'] ?? ''}`
    // A process group of its own, which ends with its background jobs.
    this.#shell = spawn('bash', ['--noprofile', '--norc'], {
      cwd,
      env: {
        ...env,
        PATH,
        INSTALLED: installed,
        MODULES: join(ROOT, 'node_modules'),
        npm_config_offline: 'true',
      },
      detached: true,
    })
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
        for (const listener of this.#listeners) listener()
      })
    }
    this.#shell.stdin.write(PRELUDE)
  }

  /** Types commands. Resolves once they have ended; rejects if one of them has failed. */
  async type(commands: string): Promise<void> {
    this.start(commands)
    const end = await this.#ended()
    if (!end.endsWith(' 0')) throw new Error(`${commands} failed:\n${this.#output}`)
  }

  /** Types a command that goes on running. */
  start(command: string): void {
    this.#typed += 1
    this.#seen = this.#output.length
    this.#shell.stdin.write(`failed=0\n${command}\necho "end of block ${this.#typed}: $failed"\n`)
  }

  /** Presses Ctrl-C. Resolves once the program that runs has ended. */
  async interrupt(): Promise<void> {
    if (this.#shell.pid !== undefined) process.kill(-this.#shell.pid, 'SIGINT')
    await this.#ended()
  }

  /** Resolves with the line that follows the last commands. */
  #ended(): Promise<string> {
    return this.#until(new RegExp(`^end of block ${this.#typed}: \\d+$`, 'm'), 'end of the commands')
  }

  /** Resolves with the output since the last commands once it has these lines in this order, in which `…` is any text. */
  shows(lines: string): Promise<string> {
    const patterns = lines
      .trim()
      .split('\n')
      .map((line) => `^${patternOf(line)}[ \\t]*$`)
    return this.#until(new RegExp(patterns.join('(?:\\n.*)*?\\n'), 'm'), `output:\n${lines}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode, pid } = this.#shell
    if (exitCode !== null || signalCode !== null || pid === undefined) return
    const exited = once(this.#shell, 'exit')
    process.kill(-pid, 'SIGKILL')
    await exited
  }

  /** Resolves with what matches in the output since the last commands. Rejects after the time that a test has. */
  #until(wanted: RegExp, what: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const settle = (result: () => void) => {
        clearTimeout(timeout)
        this.#listeners.delete(check)
        result()
      }
      const check = () => {
        const [found] = wanted.exec(this.#output.slice(this.#seen)) ?? []
        if (found !== undefined) settle(() => resolve(found))
      }
      const timeout = setTimeout(
        () => settle(() => reject(new Error(`no ${what}\nbut:\n${this.#output.slice(this.#seen)}`))),
        WAIT,
      )
      this.#listeners.add(check)
      check()
    })
  }
}

/** A line of a page as a pattern: `…` is any text, and there may be more spaces. */
export function patternOf(line: string): string {
  return line
    .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/ +/g, String.raw`[ \t]+`)
    .replaceAll('…', '.*')
}

/** How long output may take, in ms. Only a failure uses it up. */
const WAIT = 120_000

async function save(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}

/** A port that nothing listens on. */
async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address())
  server.close()
  await once(server, 'close')
  return String(port)
}
