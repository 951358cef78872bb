import { DrainTimeoutError } from '../../../operators/index.ts'
import { Job } from '../../log/event-log/job.ts'
import type { LogJob } from '../../log/event-log/job.ts'

/** One job of several parts. The first that ends or fails ends the others, in their order. */
export function jobOf(parts: readonly LogJob[]): LogJob {
  const end = async (): Promise<void> => {
    const failures: unknown[] = []
    for (const part of parts) {
      await part.stop().catch((error: unknown) => {
        if (!isCutOff(error)) failures.push(error)
      })
    }
    if (failures.length > 0) throw failures[0]
  }
  let ending: Promise<void> | undefined
  const stop = (): Promise<void> => (ending ??= end())
  const done = Promise.race(parts.map((part) => part.done)).then(stop, stop)
  return new Job(done, () => void stop().catch(() => undefined))
}

/** Whether the error only says that alerts were not notified before the job was stopped. They come again. */
function isCutOff(error: unknown): boolean {
  return error instanceof DrainTimeoutError && error.cause === undefined
}
