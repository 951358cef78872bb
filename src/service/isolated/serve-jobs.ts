import { parentPort } from 'node:worker_threads'
import type { JobTable } from './job-thread.ts'

/** The job that the other thread asks for. */
interface Request {
  readonly name: string
  readonly input: never
}

/** Executes the jobs that a `JobThread` posts to this thread, and posts when it loads the function of one. */
export function serveJobs(jobs: JobTable): void {
  if (parentPort === null) throw new Error('this file is for a worker thread')
  const port = parentPort
  const loaded = new Map<string, Awaited<ReturnType<JobTable[string]>>>()

  async function functionOf(name: string) {
    const known = loaded.get(name)
    if (known !== undefined) return known
    const load = jobs[name]
    if (load === undefined) throw new Error(`there is no job ${name}`)
    port.postMessage('loading')
    const made = await load()
    loaded.set(name, made)
    port.postMessage({ type: 'loaded', cpu: cpuTime() })
    return made
  }

  port.on('message', async ({ name, input }: Request) => {
    try {
      const execute = await functionOf(name)
      port.postMessage({ value: await execute(input), cpu: cpuTime() })
    } catch (error) {
      port.postMessage({ error: error instanceof Error ? error.message : String(error), cpu: cpuTime() })
    }
  })
  port.postMessage('ready')
}

/** How long this thread has used a processor, in ms; undefined if this version of Node does not measure it. */
function cpuTime(): number | undefined {
  if (typeof process.threadCpuUsage !== 'function') return undefined
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
