import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import MarkdownIt from 'markdown-it'

/** A step of a tutorial: what its reader types, saves, or expects to see. */
type Step =
  | { readonly kind: 'commands'; readonly terminal: number; readonly text: string }
  | { readonly kind: 'file'; readonly file: string; readonly text: string }
  | { readonly kind: 'output'; readonly text: string }

/**
 * The steps of a page, in order: a `sh` block names its terminal in its first line, a `text` block is output, and the sentence before any other block
 * names its file.
 */
export function stepsOf(page: string): Step[] {
  const tokens = new MarkdownIt().parse(readFileSync(page, 'utf8'), {})
  return tokens.flatMap((token, index): Step[] => {
    if (token.type !== 'fence') return []
    const text = token.content
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

/** Copies the packages that the tests have installed, in place of a download. It refuses a name that they have not. */
const PRELUDE = `
npm() {
  if [ "$1" != install ]; then command npm "$@"; return; fi
  shift
  for name in "$@"; do [ -e "$INSTALLED/node_modules/$name" ] || { echo "no package $name"; return 1; }; done
  cp -R "$INSTALLED/node_modules" .
  chmod +x node_modules/rivulet/dist/src/cli/main.js
  mkdir -p node_modules/.bin
  ln -s ../rivulet/dist/src/cli/main.js node_modules/.bin/rivulet
}
`

/** A shell in which the commands of a tutorial are typed. Its disposal ends all that runs in it. */
export class Terminal implements AsyncDisposable {
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
      env: { ...env, PATH, INSTALLED: installed, npm_config_offline: 'true' },
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

  /** Types commands. Resolves once they have ended; rejects if the last one has failed. */
  async type(commands: string): Promise<void> {
    this.#typed += 1
    const end = `end of block ${this.#typed}:`
    this.#seen = this.#output.length
    this.#shell.stdin.write(`${commands}\necho "${end} $?"\n`)
    await this.#until((output) => new RegExp(`^${end} \\d+$`, 'm').test(output), `the end of:\n${commands}`)
    if (!this.#output.includes(`${end} 0\n`)) throw new Error(`${commands} failed:\n${this.#output}`)
  }

  /** Types a command that goes on running. */
  start(command: string): void {
    this.#seen = this.#output.length
    this.#shell.stdin.write(command)
  }

  /** Resolves once the output since the last commands has these lines in this order, in which `…` is any text. */
  async shows(lines: string): Promise<void> {
    const pattern = lines
      .trim()
      .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll(/ +/g, String.raw`\s+`)
      .replaceAll('…', '.*')
      .replaceAll('\n', '\n(?:.*\n)*?')
    await this.#until((output) => new RegExp(pattern).test(output), `output:\n${lines}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode, pid } = this.#shell
    if (exitCode !== null || signalCode !== null || pid === undefined) return
    const exited = once(this.#shell, 'exit')
    process.kill(-pid, 'SIGKILL')
    await exited
  }

  /** Resolves once the output since the last commands is as wanted. Rejects after the time that a test has. */
  #until(isWanted: (output: string) => boolean, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (result: () => void) => {
        clearTimeout(timeout)
        this.#listeners.delete(check)
        result()
      }
      const check = () => {
        if (isWanted(this.#output.slice(this.#seen))) settle(resolve)
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

/** How long output may take, in ms. Only a failure uses it up. */
const WAIT = 120_000

/** Saves a file of a tutorial. */
export async function save(folder: string, file: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, file)), { recursive: true })
  await writeFile(join(folder, file), text)
}

/** A port that nothing listens on. */
export async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address())
  server.close()
  await once(server, 'close')
  return String(port)
}
