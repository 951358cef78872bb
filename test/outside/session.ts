import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { JournalReader } from './journal.ts'
import type { Line, ProcessSettings } from './journal.ts'
import type { MutantName } from '../soak/mutants.ts'

// From its source: the clock is imported before it, and a bundle would have a second one.
const PROGRAM = fileURLToPath(new URL('process.ts', import.meta.url))
const CLOCK = new URL('clock.ts', import.meta.url).href
const MUTATE = new URL('../soak/mutate.ts', import.meta.url).href

/** Arguments of Node for a program that uses the library, which may have a defect. */
export function nodeArguments(mutant: MutantName | undefined): string[] {
  return ['--conditions=rivulet-source', ...(mutant === undefined ? [] : [`--import=${MUTATE}`])]
}

/** What happens to a process other than a kill. */
export type Disturbance = 'taken over' | 'cut off' | 'put back'

/** A process of the library's user. */
export class Session {
  readonly settings: ProcessSettings
  readonly disturbances = new Set<Disturbance>()
  readonly #child: ChildProcess
  readonly #journal: JournalReader
  readonly #exited: Promise<unknown>
  #isSuspended = false
  #errors = ''

  /** @param clock By how much its wall clock differs, in ms. */
  constructor(settings: ProcessSettings, clock: number, mutant: MutantName | undefined) {
    this.settings = settings
    this.#journal = new JournalReader(settings.journal)
    this.#child = fork(PROGRAM, {
      env: {
        ...process.env,
        OUTSIDE_PROCESS: JSON.stringify(settings),
        OUTSIDE_CLOCK: String(clock),
        SOAK_MUTANT: mutant ?? '',
      },
      execArgv: [
        ...nodeArguments(mutant),
        `--import=${CLOCK}`,
        '--report-on-signal',
        `--report-directory=${dirname(settings.journal)}`,
      ],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#exited = once(this.#child, 'exit')
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    // A message to a process that has just ended.
    this.#child.on('error', () => {})
  }

  get lines(): readonly Line[] {
    return this.#journal.lines
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** Whether it has ended as it was asked to, after it had opened the log. */
  get isOrderly(): boolean {
    return this.#child.exitCode === 0 && this.lines.some(({ kind }) => kind === 'open')
  }

  /** The error with which it has ended by itself. */
  get failure():
    | { readonly role: string; readonly name: string; readonly reason: string | null; readonly text: string }
    | undefined {
    const error = this.lines.findLast((line) => line.kind === 'error')
    if (error !== undefined || this.#child.exitCode === null || this.#child.exitCode === 0) return error
    return { role: 'none', name: 'crash', reason: null, text: this.#errors }
  }

  setClock(clock: number): void {
    if (this.#child.connected) this.#child.send({ clock }, () => {})
  }

  suspend(): void {
    this.#isSuspended = true
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    if (!this.#isSuspended) return
    this.#isSuspended = false
    this.#child.kill('SIGCONT')
  }

  /** Kills what does not stop. Its stack, timers and sockets are in a report beside its journal. */
  async giveUp(): Promise<void> {
    this.#child.kill('SIGUSR2')
    await delay(2_000)
    this.#child.kill('SIGKILL')
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.resume()
    if (!this.hasExited) this.#child.kill(signal)
    await this.#exited
  }
}
