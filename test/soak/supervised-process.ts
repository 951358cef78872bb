import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { sourceFile, programFiles } from '../support/programs.ts'
import type { Role, RoleOrder, RoleReport, RoleSettings, StrikeOrder } from './messages.ts'
import type { MutantName } from './mutants.ts'

const fileOf = await programFiles()

const MUTATE = new URL('mutate.ts', import.meta.url).href

/** How long a process may take to reach a transaction of the kind at which it is to die, in ms. */
const STRIKE_PATIENCE = 5_000

/** How long a process may take to notice that another one has taken its place, in ms. A mutant may never notice it. */
const FENCE_PATIENCE = 30_000
const MUTANT_FENCE_PATIENCE = 4_000

/** The process of a role, with a supervisor that restarts it when it ends. */
export class SupervisedProcess {
  readonly role: Role
  readonly #settings: () => RoleSettings
  readonly #mutant: MutantName | undefined
  readonly #onError: (text: string) => void
  #child: ChildProcess | undefined
  #atWork: Promise<unknown> = Promise.resolve()
  #stopping = false
  /** Number of kills. */
  kills = 0
  /** Number of exits with an error. */
  failures = 0
  /** Maximum resident memory, in MB. */
  maxRssMb = 0

  /**
   * @param settings Called at each start.
   * @param options `mutant`: a defect that the process runs with. `onError` is called with the error output of the process.
   */
  constructor(
    role: Role,
    settings: () => RoleSettings,
    {
      mutant,
      onError,
    }: { readonly mutant?: MutantName | undefined; readonly onError: (text: string) => void },
  ) {
    this.role = role
    this.#settings = settings
    this.#mutant = mutant
    this.#onError = onError
  }

  start(): void {
    const settings = this.#settings()
    const program = `test/soak/roles/${this.role}.ts` as const
    const child = fork(this.#mutant === undefined ? fileOf(program) : sourceFile(program), {
      env: {
        NODE_COMPILE_CACHE: `${settings.folder}/compiled`,
        ...process.env,
        SOAK_ROLE: JSON.stringify(settings),
        ...(this.#mutant !== undefined && { SOAK_MUTANT: this.#mutant }),
      },
      execArgv: [
        '--conditions=rivulet-source',
        ...(this.#mutant === undefined ? [] : [`--import=${MUTATE}`]),
      ],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child = child
    child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#onError(`${this.role}: ${text}`))
    child.on('message', ({ rssMb, hasLostLocks }: RoleReport) => {
      this.maxRssMb = Math.max(this.maxRssMb, rssMb)
      if (hasLostLocks) child.emit('lost-locks')
    })
    child.on('exit', (code) => {
      if (this.#stopping || this.#child !== child) return
      if (code !== 0) this.failures += 1
      this.start()
    })
    this.#atWork = Promise.race([once(child, 'message'), once(child, 'exit')])
  }

  /**
   * Kills the process, at once or within a transaction, calls the inspection, and starts it again.
   *
   * @returns Whether it died within the transaction.
   */
  async kill(strike: StrikeOrder | undefined, inspect: () => void): Promise<boolean> {
    // Before that, it does not know its orders.
    await this.#atWork
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return false
    this.#child = undefined
    const exited = once(child, 'exit')
    let hasStruck = false
    if (strike !== undefined) {
      child.send(strike)
      const deadline = new AbortController()
      const timer = setTimeout(() => deadline.abort(), STRIKE_PATIENCE)
      hasStruck = await Promise.race([
        exited.then(() => child.signalCode === 'SIGKILL'),
        once(deadline.signal, 'abort').then(() => false),
      ])
      clearTimeout(timer)
    }
    if (!hasStruck) child.kill('SIGKILL')
    await exited
    this.kills += 1
    inspect()
    this.start()
    return hasStruck
  }

  /**
   * Takes the locks from the process and starts another one in its place, while it goes on.
   *
   * @returns Whether it ended by being fenced.
   */
  async takeOver(): Promise<boolean> {
    await this.#atWork
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return false
    this.#child = undefined
    let errors = ''
    child.stderr?.on('data', (text: string) => (errors += text))
    const exited = once(child, 'exit')
    const lost = once(child, 'lost-locks')
    child.send({ loseLocks: true } satisfies RoleOrder)
    await Promise.race([lost, exited])
    this.start()
    const patience = this.#mutant === undefined ? FENCE_PATIENCE : MUTANT_FENCE_PATIENCE
    const timer = setTimeout(() => child.kill('SIGKILL'), patience)
    await exited
    clearTimeout(timer)
    return errors.includes('FencedError')
  }

  /** Stops the process gracefully; resolves to its exit code. */
  async stop(): Promise<number | null> {
    this.#stopping = true
    const child = this.#child
    if (child === undefined) return null
    // Before that, it has no signal handler.
    await this.#atWork
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    }
    return child.exitCode
  }
}
