import { cutText } from '../protocol/cut-text.ts'
import { RivuletError } from '../protocol/rivulet-error.ts'

/**
 * A function of a process failed at an entry or a timer, or asked for what a process cannot do. Nothing of what it did there
 * was kept. `cause` is what it threw.
 */
export class ProcessError extends RivuletError {
  override readonly name = 'ProcessError'
  override readonly code = 'process'
  /** The process. */
  readonly process: string
  /** The key; undefined if `key` or `where` failed, so that it is not known. */
  readonly key: string | undefined
  /**
   * The entry; of a timer, the one that was going to be processed when it fired. Undefined while states are migrated, and between entries.
   * Without a log, it has no position.
   */
  readonly entry:
    | { readonly source: string; readonly id: string; readonly position?: string | undefined }
    | undefined
  /** The name of the timer, and when it was due, in Unix ms; undefined at an entry. */
  readonly timer: { readonly name: string; readonly due: number } | undefined

  /** @param problem What is wrong, as in "the process "silent" failed at …: its state is not JSON". */
  constructor(
    process: string,
    {
      key,
      entry,
      timer,
    }: {
      readonly key?: string | undefined
      readonly entry?: ProcessError['entry']
      readonly timer?: ProcessError['timer']
    },
    problem: string,
    options?: ErrorOptions,
  ) {
    const at =
      timer !== undefined
        ? `the timer ${shown(timer.name)} that was due at ${timer.due}`
        : entry !== undefined
          ? `the event ${shown(entry.id)} of ${entry.source}`
          : 'a stored state'
    const of = key === undefined ? '' : `, key ${shown(key)}`
    super(`the process ${JSON.stringify(process)} failed at ${at}${of}: ${problem}`, options)
    this.process = process
    this.key = key
    this.entry = entry && { source: entry.source, id: entry.id, position: entry.position }
    this.timer = timer && { name: timer.name, due: timer.due }
  }
}

function shown(text: string): string {
  return JSON.stringify(cutText(text, 100))
}
