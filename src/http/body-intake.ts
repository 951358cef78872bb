/** Why a body was not taken in. */
export type BodyFailure = 'body_too_large' | 'body_timeout' | 'incomplete_body' | 'overloaded'

/** What a server allows the bodies of its requests. */
export interface BodyLimits {
  /** The largest body, in bytes. */
  readonly maxBodyBytes: number
  /** What the bodies of all requests may hold at once, in bytes. Default no limit but those of each. */
  readonly maxBytesInFlight?: number
  /** How long one body may take to come, in ms. Default as long as the server waits for a request. */
  readonly bodyTimeout?: number
}

/** Takes in the bodies of all requests of a server, within one bound on what they hold. */
export class BodyIntake {
  readonly maxBodyBytes: number
  readonly bodyTimeout: number | undefined
  readonly #maxBytesInFlight: number
  #held = 0

  constructor({ maxBodyBytes, maxBytesInFlight = Infinity, bodyTimeout }: BodyLimits) {
    this.maxBodyBytes = maxBodyBytes
    this.bodyTimeout = bodyTimeout
    this.#maxBytesInFlight = maxBytesInFlight
  }

  /** Why a body of the length that its sender declares is not worth reading. */
  refusalOf(contentLength: string | null | undefined): BodyFailure | undefined {
    const declared = Number(contentLength ?? 0)
    if (declared > this.maxBodyBytes) return 'body_too_large'
    return this.#held + declared > this.#maxBytesInFlight ? 'overloaded' : undefined
  }

  /** Begins a body. It has to be released. */
  open(): IncomingBody {
    return new IncomingBody(this)
  }

  /** Counts what a body is going to hold; false where it is too much. */
  hold(bytes: number): boolean {
    if (this.#held + bytes > this.#maxBytesInFlight) return false
    this.#held += bytes
    return true
  }

  /** Counts what a body holds no more. */
  giveBack(bytes: number): void {
    this.#held -= bytes
  }
}

const NOTHING = new Uint8Array()

/**
 * One body while it comes in. It counts the bytes that come, since a declared length need not be true, and holds them in one
 * buffer: a list of chunks of one byte each would take many times their bytes.
 */
export class IncomingBody {
  /** All bytes of the body, or why they are not to be had. Never rejects. */
  readonly bytes: Promise<Uint8Array | BodyFailure>
  readonly #intake: BodyIntake
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Undefined once `bytes` is settled. */
  #settle: ((outcome: Uint8Array | BodyFailure) => void) | undefined
  /** The first chunk itself, or a copy of all chunks with room for more. */
  #buffer: Uint8Array = NOTHING
  #size = 0

  constructor(intake: BodyIntake) {
    this.#intake = intake
    this.bytes = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  /** Lets its time run from now on. */
  startTimer(): void {
    const { bodyTimeout } = this.#intake
    if (bodyTimeout === undefined || this.settled) return
    this.#timer = setTimeout(IncomingBody.#late, bodyTimeout, this)
  }

  /** Whether nothing more is wanted: all has come, or something failed. */
  get settled(): boolean {
    return this.#settle === undefined
  }

  /** Takes the next bytes, which are dropped where nothing more is wanted. */
  add(chunk: Uint8Array): void {
    if (this.settled) return
    const size = this.#size + chunk.byteLength
    if (size > this.#intake.maxBodyBytes) return this.fail('body_too_large')
    if (this.#size === 0) {
      if (!this.#intake.hold(size)) return this.fail('overloaded')
      this.#buffer = chunk
    } else {
      if (size > this.#buffer.byteLength && !this.#grow(size)) return this.fail('overloaded')
      this.#buffer.set(chunk, this.#size)
    }
    this.#size = size
  }

  /** All of it has come. */
  end(): void {
    this.#finish(this.#buffer.subarray(0, this.#size))
  }

  /** It does not come, or is not wanted. What came is dropped. */
  fail(failure: BodyFailure): void {
    if (this.settled) return
    this.release()
    this.#finish(failure)
  }

  /** Gives back what the body holds. To be called once its request is answered. */
  release(): void {
    clearTimeout(this.#timer)
    this.#intake.giveBack(this.#buffer.byteLength)
    this.#buffer = NOTHING
  }

  /** Makes room for this many bytes. Doubled, so that what is copied stays in proportion to the body. */
  #grow(size: number): boolean {
    const before = this.#buffer
    const capacity = Math.min(Math.max(2 * before.byteLength, size), this.#intake.maxBodyBytes)
    if (!this.#intake.hold(capacity - before.byteLength)) return false
    this.#buffer = new Uint8Array(capacity)
    this.#buffer.set(before)
    return true
  }

  #finish(outcome: Uint8Array | BodyFailure): void {
    clearTimeout(this.#timer)
    this.#settle?.(outcome)
    this.#settle = undefined
  }

  // Static, since every body would have a closure of its own.
  static #late(this: void, body: IncomingBody): void {
    body.fail('body_timeout')
  }
}
