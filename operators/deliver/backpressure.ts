import { Gate } from '../../src/protocol/gate.ts'

/**
 * Holds the sources of a consumer while it is full, and while the consumer that it feeds holds it.
 */
export class Brake {
  /** For the sources to be subscribed through. */
  readonly gate = new Gate()
  readonly #outer: Gate | undefined
  readonly #elsewhere: Gate | undefined
  readonly #leave: (() => void) | undefined
  #full = false
  #released = false

  /**
   * @param outer The gate of the consumer that is fed.
   * @param elsewhere Closed and opened along with `gate`.
   */
  constructor(outer: Gate | undefined, elsewhere: Gate | undefined) {
    // A gate that was its own reason to be closed would never open again.
    this.#outer = outer === elsewhere ? undefined : outer
    this.#elsewhere = elsewhere
    this.#leave = this.#outer?.onChange(() => this.#apply())
    this.#apply()
  }

  /** The consumer is full, or has room again. */
  set(full: boolean): void {
    if (this.#full === full) return
    this.#full = full
    this.#apply()
  }

  /** The consumer takes no more: nobody is held any longer. */
  release(): void {
    if (this.#released) return
    this.#released = true
    this.#leave?.()
    this.#apply()
  }

  #apply(): void {
    const closed = !this.#released && (this.#full || this.#outer?.closed === true)
    if (closed === this.gate.closed) return
    if (closed) this.gate.close()
    else this.gate.open()
    // Not by `closed`: a source that is let go on may fill the consumer at once.
    if (this.gate.closed) this.#elsewhere?.close()
    else this.#elsewhere?.open()
  }
}
