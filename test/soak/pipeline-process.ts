import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { countIn } from './audit.ts'
import type { PipelineReport, PipelineSettings } from './messages.ts'

const PIPELINE = fileURLToPath(new URL('pipeline.ts', import.meta.url))

/** The pipeline's process: started, killed, and started again when it ends by itself, as a supervisor would. */
export class PipelineProcess {
  readonly #settings: PipelineSettings
  readonly #onHandled: (count: number) => void
  readonly #onError: (text: string) => void
  #child: ChildProcess | undefined
  #atWork: Promise<unknown> = Promise.resolve()
  #stopping = false
  /** Times that it was killed. */
  kills = 0
  /** Times that it ended by itself, with an error. */
  failures = 0
  /** Its resident memory, at the most, in MB. */
  maxRssMb = 0

  /**
   * @param onHandled Hears how many events were handled so far, over all starts.
   * @param onError Hears what the process says before it ends by itself.
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
    // One that was killed could not report all that it had handled.
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

  /** Ends it at once, wherever it is, has a look at what it left, and starts it again. */
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

  /** Lets it finish what it is at; resolves to its exit code. */
  async stop(): Promise<number | null> {
    this.#stopping = true
    const child = this.#child
    if (child === undefined) return null
    // Before, it would not know what a signal means.
    await this.#atWork
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    }
    return child.exitCode
  }
}
