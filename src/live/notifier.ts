import type { Environment } from './environment.ts'

/** Calls a function with the next frame after a change, once for all changes until then. */
export class Notifier {
  readonly #environment: Environment
  readonly #notify: () => void
  #cancel: (() => void) | undefined

  constructor(environment: Environment, notify: () => void) {
    this.#environment = environment
    this.#notify = notify
  }

  changed(): void {
    this.#cancel ??= this.#environment.nextFrame(() => {
      this.#cancel = undefined
      this.#notify()
    })
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}

/** Calls each listener. What one of them throws becomes an uncaught error, and the others are called. */
export function callAll<Value>(listeners: Iterable<(value: Value) => void>, value: Value): void {
  for (const listener of Array.from(listeners)) {
    try {
      listener(value)
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }
}
