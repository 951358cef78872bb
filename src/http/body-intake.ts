/** Why a body was refused. */
export type BodyFailure = 'body_too_large' | 'body_timeout' | 'incomplete_body' | 'overloaded'

/** A server's limits for the bodies of its requests. */
export interface BodyLimits {
  /** The largest body, in bytes. */
  readonly maxBodyBytes: number
  /** The most memory for the bodies of all requests in flight, in bytes. Default unlimited. */
  readonly maxBytesInFlight?: number
  /** How long one body may take to arrive, in ms. Default as long as the server waits for a request. */
  readonly bodyTimeout?: number
}

/** Receives the bodies of all requests of a server, within one limit on their memory. */
export class BodyIntake {
  readonly maxBodyBytes: number
  readonly bodyTimeout: number | undefined
  readonly #maxBytesInFlight: number
  #reserved = 0

  constructor({ maxBodyBytes, maxBytesInFlight = Infinity, bodyTimeout }: BodyLimits) {
    this.maxBodyBytes = maxBodyBytes
    this.bodyTimeout = bodyTimeout
    this.#maxBytesInFlight = maxBytesInFlight
  }

  /** Why to refuse a body of the declared length without reading it; undefined if it is accepted. */
  refusalOf(contentLength: string | null | undefined): BodyFailure | undefined {
    const declared = Number(contentLength ?? 0)
    if (declared > this.maxBodyBytes) return 'body_too_large'
    return this.#reserved + declared > this.#maxBytesInFlight ? 'overloaded' : undefined
  }

  /** Starts a body. It must be released. */
  open(): IncomingBody {
    return new IncomingBody(this)
  }

  /** Reserves memory for a body. Returns false if that would exceed the limit. */
  reserve(bytes: number): boolean {
    if (this.#reserved + bytes > this.#maxBytesInFlight) return false
    this.#reserved += bytes
    return true
  }

  /** Returns reserved memory. */
  release(bytes: number): void {
    this.#reserved -= bytes
  }
}

const NOTHING = new Uint8Array()

/**
 * One body while it arrives. It counts the received bytes, since a declared length may be wrong, and keeps them in one buffer,
 * since a list of one-byte chunks would take many times their size.
 */
export class IncomingBody {
  /** All bytes of the body, or why it failed. Never rejects. */
  readonly bytes: Promise<Uint8Array | BodyFailure>
  readonly #intake: BodyIntake
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Undefined once `bytes` is settled. */
  #settle: ((outcome: Uint8Array | BodyFailure) => void) | undefined
  /** The first chunk itself, or a copy of all chunks with spare capacity. */
  #buffer: Uint8Array = NOTHING
  #size = 0

  constructor(intake: BodyIntake) {
    this.#intake = intake
    this.bytes = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  /** Starts the timeout. */
  startTimer(): void {
    const { bodyTimeout } = this.#intake
    if (bodyTimeout === undefined || this.settled) return
    this.#timer = setTimeout(IncomingBody.#onTimeout, bodyTimeout, this)
  }

  /** Whether the body is complete or failed. */
  get settled(): boolean {
    return this.#settle === undefined
  }

  /** Adds the next bytes. They are dropped once the body is settled. */
  add(chunk: Uint8Array): void {
    if (this.settled) return
    const size = this.#size + chunk.byteLength
    if (size > this.#intake.maxBodyBytes) return this.fail('body_too_large')
    if (this.#size === 0) {
      if (!this.#intake.reserve(size)) return this.fail('overloaded')
      this.#buffer = chunk
    } else {
      if (size > this.#buffer.byteLength && !this.#grow(size)) return this.fail('overloaded')
      this.#buffer.set(chunk, this.#size)
    }
    this.#size = size
  }

  /** The body is complete. */
  end(): void {
    this.#finish(this.#buffer.subarray(0, this.#size))
  }

  /** The body failed. Drops the received bytes. */
  fail(failure: BodyFailure): void {
    if (this.settled) return
    this.release()
    this.#finish(failure)
  }

  /** Returns the body's memory. Call it after the request is answered. */
  release(): void {
    clearTimeout(this.#timer)
    this.#intake.release(this.#buffer.byteLength)
    this.#buffer = NOTHING
  }

  /** Grows the buffer to this many bytes. The capacity doubles, so that the copied bytes are linear in the body's size. */
  #grow(size: number): boolean {
    const before = this.#buffer
    const capacity = Math.min(Math.max(2 * before.byteLength, size), this.#intake.maxBodyBytes)
    if (!this.#intake.reserve(capacity - before.byteLength)) return false
    this.#buffer = new Uint8Array(capacity)
    this.#buffer.set(before)
    return true
  }

  #finish(outcome: Uint8Array | BodyFailure): void {
    clearTimeout(this.#timer)
    this.#settle?.(outcome)
    this.#settle = undefined
  }

  // Static, to save a closure per body.
  static #onTimeout(this: void, body: IncomingBody): void {
    body.fail('body_timeout')
  }
}
