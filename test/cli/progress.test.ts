import { EventEmitter } from 'node:events'
import { WriteStream } from 'node:tty'
import { groupEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { createProgress } from '../../src/cli/progress.ts'

const HIDE_CURSOR = '\u001B[?25l'
const SHOW_CURSOR = '\u001B[?25h'

/** A terminal that records its output. */
function terminal() {
  let written = ''
  const stream: NodeJS.WriteStream = Object.assign(Object.create(WriteStream.prototype), {
    isTTY: true,
    columns: 80,
    write(text: string) {
      written += text
      return true
    },
    getWindowSize: () => [80, 24],
  })
  return { stream, written: () => written }
}

function status(completed: number, total: number) {
  const counts = { completed, running: total - completed }
  const wire = { num_task_runs: total, task_run_status_counts: counts, is_active: completed < total }
  return groupEvent('g', { type: 'task_group_status', event_id: `${completed}`, status: wire }, 'stream')
}

describe('the progress bar', () => {
  it('shows the progress of the groups, and restores the cursor', () => {
    const { stream, written } = terminal()
    const host = new EventEmitter()
    const progress = createProgress(stream, host)
    progress.take(status(1, 3))
    const shown = written()
    progress.stop()

    expect(shown).toContain('1 of 3 runs')
    expect(shown.lastIndexOf(HIDE_CURSOR)).toBeGreaterThan(shown.lastIndexOf(SHOW_CURSOR))
    expect(written().lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(written().lastIndexOf(HIDE_CURSOR))
    expect(host.listenerCount('exit')).toBe(0)
  })

  it('is removed when the process ends without stopping it', () => {
    const { stream, written } = terminal()
    const host = new EventEmitter()
    createProgress(stream, host).take(status(1, 3))
    host.emit('exit')

    expect(written().lastIndexOf(SHOW_CURSOR)).toBeGreaterThan(written().lastIndexOf(HIDE_CURSOR))
  })
})
