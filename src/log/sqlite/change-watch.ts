import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import type { LogFile } from './log-file.ts'
import { isBusy } from './sqlite-error.ts'

/** How often the file is asked for changes of other connections, in ms. It takes 3 µs, and 6 µs for the check that it is still there. */
const POLL_INTERVAL = 25

/** How often it is asked after a report of the watch, in ms, and how many times. */
const EAGER_INTERVAL = 2
const EAGER_POLLS = 15

interface Waiter {
  readonly isReached: () => boolean
  resolve(): void
  reject(reason: unknown): void
}

/**
 * Calls that wait for a change of the log. Changes of this connection are reported by {@link notify}; those of other ones are
 * noticed by a watch on the -wal file, where watches work, and by polling SQLite's `data_version`, both only while a call waits.
 *
 * The poll keeps the process alive: a process that only consumes has nothing else that does, and must not end because the log
 * is empty at the moment. The watch does not, and neither does a log without waiting calls.
 */
export class ChangeWatch {
  readonly #file: LogFile
  readonly #dataVersion
  readonly #waiters = new Set<Waiter>()
  #version: unknown
  #poll: NodeJS.Timeout | undefined
  #watcher: FSWatcher | undefined
  #eager: NodeJS.Timeout | undefined
  #eagerPolls = 0

  constructor(file: LogFile) {
    this.#file = file
    this.#dataVersion = file.database.prepare('PRAGMA data_version')
  }

  /** Resolves once `isReached`. Rejects with the signal's reason, or with what `isReached` throws. */
  until(isReached: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => waiter.reject(signal.reason)
      const remove = () => {
        signal.removeEventListener('abort', abort)
        this.#waiters.delete(waiter)
        if (this.#waiters.size === 0) this.#stop()
      }
      const waiter: Waiter = {
        isReached,
        resolve() {
          remove()
          resolve()
        },
        reject(reason) {
          remove()
          reject(reason)
        },
      }
      this.#waiters.add(waiter)
      signal.addEventListener('abort', abort)
      this.#start()
      // After the start, so that a change in between is noticed.
      this.#ask(waiter)
    })
  }

  /** Reports a change of this connection. */
  notify(): void {
    for (const waiter of this.#waiters) this.#ask(waiter)
  }

  /** Rejects all that wait. */
  close(error: Error): void {
    for (const waiter of this.#waiters) waiter.reject(error)
  }

  #ask(waiter: Waiter): void {
    try {
      if (waiter.isReached()) waiter.resolve()
    } catch (error) {
      // While another connection recovers the file. The next poll asks again.
      if (isBusy(error)) this.#version = undefined
      else waiter.reject(error)
    }
  }

  #start(): void {
    if (this.#poll !== undefined) return
    const check = () => this.#check()
    this.#poll = setInterval(check, POLL_INTERVAL)
    try {
      this.#watcher = watch(this.#file.walPath, { persistent: false }, () => this.#hurry())
      // Polling goes on without it.
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // There are no watches here, or too many.
    }
  }

  #stop(): void {
    clearInterval(this.#poll)
    clearTimeout(this.#eager)
    this.#eager = undefined
    this.#poll = undefined
    this.#watcher?.close()
    this.#watcher = undefined
    this.#version = undefined
  }

  /** The watch reports the write to the -wal file. The change becomes visible some ms later, when it is synced. */
  #hurry(): void {
    this.#eagerPolls = EAGER_POLLS
    if (this.#eager !== undefined) return
    const poll = () => {
      this.#eager = undefined
      this.#eagerPolls -= 1
      this.#check()
      // A change that was seen may be an earlier one. Without a pending wait, the check has stopped everything.
      if (this.#poll !== undefined && this.#eagerPolls > 0) this.#eager = setTimeout(poll, EAGER_INTERVAL)
    }
    poll()
  }

  /** Asks all that wait if there was a change. */
  #check(): void {
    try {
      this.#file.checkPresent()
      const version = this.#dataVersion.get()?.['data_version']
      if (version === this.#version) return
      this.#version = version
    } catch (error) {
      if (isBusy(error)) return
      for (const waiter of this.#waiters) waiter.reject(error)
      return
    }
    this.notify()
  }
}
