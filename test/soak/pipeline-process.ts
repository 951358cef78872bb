import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { countIn } from './audit.ts'
import type { PipelineReport, PipelineSettings } from './messages.ts'

const PIPELINE = fileURLToPath(new URL('pipeline.ts', import.meta.url))

/** The pipeline's process, with a supervisor that restarts it when it ends. */
export class PipelineProcess {
  readonly #settings: PipelineSettings
  readonly #onHandled: (count: number) => void
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
   * @param onHandled Called with the number of handled events, over all starts.
   * @param onError Called with the error output of the process.
   */
  constructor(
    settings: PipelineSettings,
    onHandled: (count: number) => void,
    onError: (text: string) => void,
  ) {
    this.#settings = settings
    this.#onHandled = onHandled
    this.#onError = onError
  }

  start(): void {
    const child = fork(PIPELINE, {
      env: {
        ...process.env,
        SOAK_PIPELINE: JSON.stringify(this.#settings),
        NODE_COMPILE_CACHE: `${this.#settings.state}-compiled`,
      },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child = child
    // A killed process could not report all events that it had handled.
    const before = countIn(this.#settings.handled)
    child.stderr?.setEncoding('utf8').on('data', this.#onError)
    child.on('message', ({ count, rssMb }: PipelineReport) => {
      this.maxRssMb = Math.max(this.maxRssMb, rssMb)
      if (this.#child === child) this.#onHandled(before + count)
    })
    child.on('exit', (code) => {
      if (this.#stopping || this.#child !== child) return
      if (code !== 0) this.failures += 1
      this.start()
    })
    this.#atWork = Promise.race([once(child, 'message'), once(child, 'exit')])
  }

  /** Kills the process, calls the inspection, and starts it again. */
  async kill(look: () => void): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null) return
    this.#child = undefined
    child.kill('SIGKILL')
    await once(child, 'exit')
    this.kills += 1
    look()
    this.start()
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
