import { Gate } from '../../src/protocol/gate.ts'

/** Pauses the sources of a consumer while its buffer is full, and while its own subscriber is paused. */
export class Backpressure {
  /** The gate to subscribe to the sources through. */
  readonly gate = new Gate()
  readonly #downstream: Gate | undefined
  readonly #extra: Gate | undefined
  readonly #unlisten: (() => void) | undefined
  #full = false
  #released = false

  /**
   * @param downstream The gate of the subscriber.
   * @param extra Closes and opens together with `gate`.
   */
  constructor(downstream: Gate | undefined, extra: Gate | undefined) {
    // A gate that waits for itself to open would stay closed forever.
    this.#downstream = downstream === extra ? undefined : downstream
    this.#extra = extra
    this.#unlisten = this.#downstream?.onChange(() => this.#update())
    this.#update()
  }

  /** Sets whether the consumer's buffer is full. */
  setFull(full: boolean): void {
    if (this.#full === full) return
    this.#full = full
    this.#update()
  }

  /** Resumes the sources for good: the consumer takes no more events. */
  release(): void {
    if (this.#released) return
    this.#released = true
    this.#unlisten?.()
    this.#update()
  }

  #update(): void {
    const closed = !this.#released && (this.#full || this.#downstream?.closed === true)
    if (closed === this.gate.closed) return
    if (closed) this.gate.close()
    else this.gate.open()
    // Reads the gate again: a resumed source may have filled the buffer synchronously.
    if (this.gate.closed) this.#extra?.close()
    else this.#extra?.open()
  }
}
