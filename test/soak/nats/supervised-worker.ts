import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as after } from 'node:timers/promises'
import { sourceFile, programFiles } from '../../support/programs.ts'
import type { MutantName } from '../mutants.ts'
import { REPORTED } from './messages.ts'
import type { Strike, StrikeOrder, WorkerReport, WorkerSettings } from './messages.ts'

const MUTATE = new URL('../mutate.ts', import.meta.url).href
const PROGRAM = 'test/soak/nats/worker.ts'
const fileOf = await programFiles()

/** How long a worker may take to reach a write of the kind at which it is struck, in ms. Then it is struck anyway. */
const STRIKE_PATIENCE = 1_500

/** How much longer the supervisor waits: what is ordered is over by then. */
const MARGIN = 500

/** How a job of a worker has failed, or the worker as a whole. */
export interface Failure {
  readonly error: string
  readonly message: string
}

/** A worker, with a supervisor that restarts it when it ends. */
export class SupervisedWorker {
  readonly owner: string
  /** Of all its processes. */
  readonly failures: Failure[] = []
  /** Number of entries, of which appends were acknowledged to it. */
  appended = 0
  /** Number of entries that the log had. */
  duplicates = 0
  isSuspended = false
  readonly #settings: () => WorkerSettings
  readonly #mutant: MutantName | undefined
  readonly #onError: (text: string) => void
  #child: ChildProcess | undefined
  #atWork: Promise<unknown> = Promise.resolve()
  #stopping = false

  /**
   * @param settings Called at each start.
   * @param options `mutant`: a defect that the worker runs with. `onError` is called with their error output.
   */
  constructor(
    owner: string,
    settings: () => WorkerSettings,
    {
      mutant,
      onError,
    }: { readonly mutant?: MutantName | undefined; readonly onError: (text: string) => void },
  ) {
    this.owner = owner
    this.#settings = settings
    this.#mutant = mutant
    this.#onError = onError
  }

  start(): void {
    const settings = this.#settings()
    const child = fork(this.#mutant === undefined ? fileOf(PROGRAM) : sourceFile(PROGRAM), {
      env: {
        NODE_COMPILE_CACHE: `${settings.folder}/compiled`,
        ...process.env,
        SOAK_WORKER: JSON.stringify(settings),
        ...(this.#mutant !== undefined && { SOAK_MUTANT: this.#mutant }),
      },
      execArgv: [
        '--conditions=rivulet-source',
        '--disable-warning=ExperimentalWarning',
        ...(this.#mutant === undefined ? [] : [`--import=${MUTATE}`]),
      ],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child = child
    let errors = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors = `${errors}${text}`.slice(-2_000)
      this.#onError(`${this.owner}: ${text}`)
    })
    const started = Promise.withResolvers<void>()
    child.on('message', (report: WorkerReport) => {
      if (report.what === 'started') started.resolve()
      else if (report.what === 'failed') this.#fail({ error: report.error, message: report.message })
      else {
        this.appended += report.entries
        this.duplicates += report.duplicates
      }
    })
    child.on('exit', (code, signal) => {
      started.resolve()
      if (this.#child !== child) return
      if (code !== 0 && code !== REPORTED) this.#fail({ error: String(signal ?? code), message: errors })
      if (!this.#stopping) this.start()
    })
    this.#atWork = started.promise
  }

  #fail(failure: Failure): void {
    this.failures.push(failure)
    this.#onError(`${this.owner}: ${failure.error}: ${failure.message}`)
  }

  /** Kills it, at once or within a write, and starts it again. */
  async kill(strike: Strike | undefined): Promise<void> {
    await this.#atWork
    const child = this.#child
    if (child === undefined || hasEnded(child)) return
    this.#child = undefined
    const exited = once(child, 'exit')
    await this.#strike(child, strike, exited)
    child.kill('SIGKILL')
    await exited
    this.start()
  }

  /**
   * Suspends it, at once or within a write, for so many ms.
   *
   * @returns Whether it was suspended all that time.
   */
  async suspend(strike: Strike | undefined, duration: number): Promise<boolean> {
    await this.#atWork
    const child = this.#child
    if (child === undefined || hasEnded(child)) return false
    this.isSuspended = true
    await this.#strike(child, strike, once(child, 'exit'))
    child.kill('SIGSTOP')
    await after(duration)
    child.kill('SIGCONT')
    this.isSuspended = false
    return true
  }

  /** Stops it gracefully; resolves to its exit code. */
  async stop(): Promise<number | null> {
    this.#stopping = true
    const child = this.#child
    if (child === undefined) return null
    await this.#atWork
    if (!hasEnded(child)) {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      // It may have suspended itself late.
      child.kill('SIGCONT')
      await ended
    }
    return child.exitCode
  }

  /** Ends it at once, for good. */
  end(): void {
    this.#stopping = true
    this.#child?.kill('SIGKILL')
  }

  /** It strikes itself, and nothing is known of that but that time goes by. */
  async #strike(child: ChildProcess, strike: Strike | undefined, exited: Promise<unknown>): Promise<void> {
    if (strike === undefined) return
    const until = Date.now() + STRIKE_PATIENCE
    // It may be about to end.
    child.send({ ...strike, until } satisfies StrikeOrder, () => {})
    const waiting = new AbortController()
    const patience = after(STRIKE_PATIENCE + MARGIN, undefined, { signal: waiting.signal }).catch(() => {})
    await Promise.race([exited, patience])
    waiting.abort()
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
