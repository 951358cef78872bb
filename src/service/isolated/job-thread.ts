import { Worker } from 'node:worker_threads'
import { isObject } from '../../protocol/json.ts'
import { IsolatedError } from './isolated-error.ts'

/** Loads functions by name. Their parameters and results are copied between the threads. */
export type JobTable = Readonly<Record<string, () => Promise<(input: never) => unknown>>>

/** The function of a job. */
type JobOf<Jobs extends JobTable, Name extends keyof Jobs> = Awaited<ReturnType<Jobs[Name]>>
type ResultOf<Jobs extends JobTable, Name extends keyof Jobs> = Awaited<ReturnType<JobOf<Jobs, Name>>>

/** Settings of {@link JobThread}. */
export interface JobThreadOptions {
  /** The file that the thread executes, which calls `serveJobs`. */
  readonly file: URL
  /**
   * Maximum size of the thread's heap, in MiB. Default 256. Node enforces it on a best effort (nodejs/node#47224): one huge allocation can
   * still abort the process.
   */
  readonly memory?: number
  /** Number of waiting jobs with which further ones that may be refused are refused. Default 1,000. */
  readonly maxWaiting?: number
}

/** How a job is executed. */
export interface JobOptions {
  /** Maximum time of the job, in ms of real time, without the time that it waits. On a busy machine, up to four times that. */
  readonly limit: number
  /** Whether the job is refused when too many wait, and after {@link JobThread.refuse}. Default false. */
  readonly isRefusable?: boolean
  /** Removes the job from those that wait. A job that is being executed runs to its end, and its result is dropped. */
  readonly signal?: AbortSignal | undefined
}

interface Job {
  readonly name: string
  readonly input: unknown
  readonly limit: number
  readonly isRefusable: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

/** How much longer than its limit a job may take on a machine that has no processor for it. */
const MAX_STRETCH = 4
/** Maximum time for a thread to start, and to load the function of a job, in ms of real time. */
const MAX_START = 30_000

/**
 * Executes functions in a separate thread, one at a time. The thread starts with the first job. It is replaced when a job
 * exceeds its time or its memory, or ends it; the jobs that wait are executed by its successor. It never keeps the process alive
 * while it has no job.
 */
export class JobThread<Jobs extends JobTable> {
  readonly #file: URL
  readonly #memory: number
  readonly #maxWaiting: number
  readonly #waiting: Job[] = []
  /** The threads that are being terminated. */
  readonly #ending = new Set<Promise<unknown>>()
  #worker: Worker | undefined
  #isReady = false
  #isClosed = false
  #isRefusing = false
  #current: Job | undefined
  #last = ''
  /** How long the thread had used a processor before the current job, in ms. */
  #cpu = 0
  /** Timer of the current job, or of the start. It keeps the process alive, which the thread does not. */
  #timer: NodeJS.Timeout | undefined

  constructor({ file, memory = 256, maxWaiting = 1_000 }: JobThreadOptions) {
    this.#file = file
    this.#memory = memory
    this.#maxWaiting = maxWaiting
  }

  /** Executes a job. Rejects with an {@link IsolatedError}, or with the signal's reason. */
  run<Name extends keyof Jobs & string>(
    name: Name,
    input: Parameters<JobOf<Jobs, Name>>[0],
    { limit, isRefusable = false, signal }: JobOptions,
  ): Promise<ResultOf<Jobs, Name>> {
    const { promise, resolve, reject } = Promise.withResolvers<ResultOf<Jobs, Name>>()
    if (signal?.aborted === true) reject(signal.reason)
    else if (this.#isClosed || (isRefusable && this.#isRefusing)) reject(closedError())
    else if (isRefusable && this.#waiting.length >= this.#maxWaiting) {
      reject(new IsolatedError('busy', 'Too many checks and conversions wait'))
    } else {
      // The thread executes the function with this name, whose type this is.
      const finish = (value: unknown) => resolve(value as ResultOf<Jobs, Name>)
      const job = { name, input, limit, isRefusable, resolve: finish, reject }
      this.#waiting.push(job)
      const abort = () => {
        const index = this.#waiting.indexOf(job)
        if (index !== -1) this.#waiting.splice(index, 1)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', abort, { once: true })
      const settled = () => signal?.removeEventListener('abort', abort)
      promise.then(settled, settled)
      this.#next()
    }
    return promise
  }

  /** Rejects the jobs that may be refused, also the current one, and later ones. */
  refuse(): void {
    this.#isRefusing = true
    const { refused = [], kept = [] } = Object.groupBy(this.#waiting.splice(0), ({ isRefusable }) =>
      isRefusable ? 'refused' : 'kept',
    )
    this.#waiting.push(...kept)
    if (this.#current?.isRefusable === true) this.#discard(closedError())
    for (const { reject } of refused) reject(closedError())
    this.#next()
  }

  /** Rejects all jobs, and resolves when the thread has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#discard(closedError(), this.#waiting.splice(0))
    await Promise.all(this.#ending)
  }

  #next(): void {
    if (this.#current !== undefined || this.#waiting.length === 0) return
    if (this.#worker === undefined) this.#start()
    else if (this.#isReady) this.#execute(this.#worker)
  }

  #execute(worker: Worker): void {
    const job = this.#take()
    if (job === undefined) return
    this.#current = job
    this.#last = job.name
    this.#expireAfter(job.limit)
    try {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      worker.postMessage({ name: job.name, input: job.input })
    } catch (cause) {
      this.#finish(() => job.reject(new IsolatedError('failed', 'It cannot be copied', { cause })))
    }
  }

  /** Gives the current job this time, in ms. */
  #expireAfter(limit: number): void {
    const job = this.#current
    const latest = performance.now() + limit * MAX_STRETCH
    const check = async () => {
      const timer = this.#timer
      // The result of the job may have come while this thread was busy.
      const left = limit - (await this.#cpuTime())
      if (this.#current !== job || this.#timer !== timer) return
      if (left >= 1 && performance.now() < latest) {
        this.#timer = setTimeout(check, left)
        return
      }
      this.#discard(new IsolatedError('timeout', `It takes longer than ${limit} ms`))
      this.#next()
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(check, limit)
  }

  /** How long the current job has used a processor, in ms; infinite if this version of Node does not measure it. */
  async #cpuTime(): Promise<number> {
    const worker = this.#worker
    if (worker === undefined || typeof worker.cpuUsage !== 'function') return Infinity
    try {
      const { user, system } = await worker.cpuUsage()
      return (user + system) / 1_000 - this.#cpu
    } catch {
      return Infinity
    }
  }

  /**
   * The next job: the one that waits the longest, preferably of another kind than the last one, so that no job waits for a series of
   * others.
   */
  #take(): Job | undefined {
    const other = this.#waiting.findIndex(({ name }) => name !== this.#last)
    return this.#waiting.splice(Math.max(0, other), 1)[0]
  }

  #start(): void {
    let worker: Worker
    try {
      worker = new Worker(this.#file, {
        name: 'rivulet isolated',
        // Preloaded modules and the environment of the process are not for it.
        execArgv: [],
        env: {},
        resourceLimits: { maxOldGenerationSizeMb: this.#memory, maxYoungGenerationSizeMb: 32 },
      })
    } catch (cause) {
      this.#lose(new IsolatedError('crash', 'The isolated thread does not start', { cause }))
      return
    }
    this.#worker = worker
    this.#cpu = 0
    worker.unref()
    const lose = (error: IsolatedError) => {
      if (this.#worker === worker) this.#lose(error)
    }
    this.#timer = setTimeout(
      () => lose(new IsolatedError('crash', 'The isolated thread does not start')),
      MAX_START,
    )
    worker.on('message', (message: unknown) => {
      if (this.#worker === worker) this.#receive(message)
    })
    worker.on('messageerror', (cause) => lose(crash(cause)))
    worker.on('error', (cause) => lose(crash(cause)))
    worker.on('exit', () => lose(crash()))
  }

  #receive(message: unknown): void {
    if (message === 'ready') {
      this.#isReady = true
      clearTimeout(this.#timer)
      this.#next()
      return
    }
    const job = this.#current
    if (job === undefined) return
    if (isObject(message) && typeof message['cpu'] === 'number') this.#cpu = message['cpu']
    if (message === 'loading') this.#expireAfter(MAX_START)
    if (!isObject(message)) return
    const { type, error, value } = message
    if (type === 'loaded') {
      this.#expireAfter(job.limit)
      return
    }
    this.#finish(() => {
      if (typeof error === 'string') job.reject(new IsolatedError('failed', error))
      else job.resolve(value)
    })
  }

  #finish(settle: () => void): void {
    clearTimeout(this.#timer)
    this.#current = undefined
    settle()
    this.#next()
  }

  /** Handles the loss of the thread. One that has not started would not start for the jobs that wait either. */
  #lose(error: IsolatedError): void {
    this.#discard(error, this.#isReady ? [] : this.#waiting.splice(0))
    this.#next()
  }

  /** Ends the thread. Its job and others are rejected. */
  #discard(reason: IsolatedError, others: readonly Job[] = []): void {
    clearTimeout(this.#timer)
    const worker = this.#worker
    const jobs = this.#current === undefined ? others : [this.#current, ...others]
    this.#worker = undefined
    this.#isReady = false
    this.#current = undefined
    if (worker !== undefined) {
      const ending = worker.terminate()
      this.#ending.add(ending)
      ending.then(() => this.#ending.delete(ending))
    }
    for (const { reject } of jobs) reject(reason)
  }
}

function crash(cause?: unknown): IsolatedError {
  const isMemory = isObject(cause) && cause['code'] === 'ERR_WORKER_OUT_OF_MEMORY'
  return isMemory
    ? new IsolatedError('memory', 'It takes too much memory', { cause })
    : new IsolatedError('crash', 'The isolated thread ended', { cause })
}

function closedError(): IsolatedError {
  return new IsolatedError('closed', 'The service is closed')
}
