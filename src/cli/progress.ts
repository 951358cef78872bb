import cliProgress from 'cli-progress'
import type { ResearchEvent } from 'rivulet'
import { endedRuns } from './event-line.ts'

/** A progress bar below the lines that a command prints. */
export interface Progress {
  /** Updates the progress from an event. */
  take(event: ResearchEvent): void
  /** Updates the progress of work that is no group of runs. */
  set(done: number, total: number): void
  /** Prints something else, with the bar hidden meanwhile. */
  aside(print: () => Promise<void>): Promise<void>
  /** Removes the bar. */
  stop(): void
}

/** The used part of `process`. */
interface Host {
  on(event: 'exit', listener: () => void): unknown
  off(event: 'exit', listener: () => void): unknown
}

/**
 * One bar for all task groups, on stderr if that is a terminal. It is removed even when a second Ctrl-C ends the process.
 *
 * @param unit The unit of the count.
 */
export function createProgress(
  stream: NodeJS.WriteStream = process.stderr,
  host: Host = process,
  unit: 'runs' | 'entries' = 'runs',
): Progress {
  if (!stream.isTTY) return { take() {}, set() {}, aside: (print) => print(), stop() {} }

  const bar = new cliProgress.SingleBar({
    stream,
    format: ` {bar} {value} of {total} ${unit}`,
    barCompleteChar: '━',
    barIncompleteChar: '─',
    barsize: 32,
    hideCursor: true,
    clearOnComplete: true,
    // The command handles signals itself.
    gracefulExit: false,
  })
  const remove = () => bar.stop()
  host.on('exit', remove)
  const groups = new Map<string, { readonly ended: number; readonly total: number }>()

  /** Restarts the bar after each line, since it keeps the row on which it was started. */
  const show = () => {
    const counts = [...groups.values()]
    const total = counts.reduce((sum, group) => sum + group.total, 0)
    const ended = counts.reduce((sum, group) => sum + group.ended, 0)
    if (ended < total) bar.start(total, ended)
  }

  return {
    take(event) {
      if (event.type !== 'task_group.status') return
      const { status } = event.data
      groups.set(event.source, { ended: endedRuns(status), total: status.num_task_runs })
      bar.stop()
      show()
    },
    set(done, total) {
      groups.set('', { ended: done, total })
      if (bar.isActive) bar.update(done)
      else show()
    },
    async aside(print) {
      bar.stop()
      await print()
      show()
    },
    stop() {
      host.off('exit', remove)
      bar.stop()
    },
  }
}
