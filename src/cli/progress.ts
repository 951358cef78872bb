import cliProgress from 'cli-progress'
import type { ResearchEvent } from 'rivulet'
import { endedRuns } from './event-line.ts'

/** A progress bar below the lines that a command prints. */
export interface Progress {
  /** Takes in what an event says of how far the watched groups are. */
  take(event: ResearchEvent): void
  /** Prints something else, with the bar out of its way. */
  aside(print: () => Promise<void>): Promise<void>
  /** Removes the bar. */
  stop(): void
}

/** What is needed of a process that a bar is shown in. */
interface Host {
  on(event: 'exit', listener: () => void): unknown
  off(event: 'exit', listener: () => void): unknown
}

/**
 * A bar for all task groups together, on stderr; where that is no terminal, none. A process that is ended at once, by a
 * second Ctrl-C, still removes it and shows the cursor.
 */
export function createProgress(stream: NodeJS.WriteStream = process.stderr, host: Host = process): Progress {
  if (!stream.isTTY) return { take() {}, aside: (print) => print(), stop() {} }

  const bar = new cliProgress.SingleBar({
    stream,
    format: ' {bar} {value} of {total} runs',
    barCompleteChar: '━',
    barIncompleteChar: '─',
    barsize: 32,
    hideCursor: true,
    clearOnComplete: true,
    // The command has its own way to end at a signal.
    gracefulExit: false,
  })
  const remove = () => bar.stop()
  host.on('exit', remove)
  const groups = new Map<string, { readonly ended: number; readonly total: number }>()

  /** The bar remembers the row that it was started on, so it is started anew after each line. */
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
