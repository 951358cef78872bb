import type { IncomingMessage } from 'node:http'
import { isObject } from '../protocol/event.ts'
import { later } from './later.ts'

/** Why a body was not taken in. */
export type BodyFailure = 'body_too_large' | 'body_timeout' | 'incomplete_body' | 'overloaded'

/** What a receiver allows the bodies of its requests. */
export interface BodyLimits {
  /** The largest body, in bytes. */
  readonly maxBodyBytes: number
  /** What the bodies of all requests may hold at once, in bytes. */
  readonly maxBytesInFlight: number
  /** How long one body may take to come, in ms. */
  readonly bodyTimeout: number
}

/** Takes in the bodies of all requests of a receiver, within one bound on what they hold. */
export class BodyIntake {
  readonly limits: BodyLimits
  #held = 0

  constructor(limits: BodyLimits) {
    this.limits = limits
  }

  /** Why a body of the length that its sender declares is not worth reading. */
  refusalOf(contentLength: string | null | undefined): BodyFailure | undefined {
    const declared = Number(contentLength ?? 0)
    if (declared > this.limits.maxBodyBytes) return 'body_too_large'
    return this.#held + declared > this.limits.maxBytesInFlight ? 'overloaded' : undefined
  }

  /** Begins a body. It has to be released. */
  open(): IncomingBody {
    return new IncomingBody(this)
  }

  /** Counts what a body is going to hold; false where it is too much. */
  hold(bytes: number): boolean {
    if (this.#held + bytes > this.limits.maxBytesInFlight) return false
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
    if (!this.settled) this.#timer = setTimeout(IncomingBody.#late, this.#intake.limits.bodyTimeout, this)
  }

  /** Whether nothing more is wanted: all has come, or something failed. */
  get settled(): boolean {
    return this.#settle === undefined
  }

  /** Takes the next bytes, which are dropped where nothing more is wanted. */
  add(chunk: Uint8Array): void {
    if (this.settled) return
    const size = this.#size + chunk.byteLength
    if (size > this.#intake.limits.maxBodyBytes) return this.fail('body_too_large')
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
    const capacity = Math.min(Math.max(2 * before.byteLength, size), this.#intake.limits.maxBodyBytes)
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

  // Static, since every webhook would have a closure of its own.
  static #late(this: void, body: IncomingBody): void {
    body.fail('body_timeout')
  }
}

/**
 * Reads the body of a `Request`, and no further once nothing more is wanted.
 *
 * @throws {TypeError} for a body that was read before.
 */
export function readRequest(request: Request, body: IncomingBody): void {
  if (request.bodyUsed) {
    throw new TypeError('the body was read before: hand the request over ahead of whatever parses bodies')
  }
  if (request.body === null) return body.end()
  const reader = request.body.getReader()
  body.startTimer()
  void pump(reader, body)
  // A sender that pauses leaves a read pending, which a failure has to end. What cancelling says is of no interest then.
  void body.bytes.then((outcome) => {
    if (typeof outcome === 'string') reader.cancel().catch(() => undefined)
  })
}

async function pump(reader: ReadableStreamDefaultReader<Uint8Array>, body: IncomingBody): Promise<void> {
  try {
    while (!body.settled) {
      const { done, value } = await reader.read()
      if (done) return body.end()
      // A stream of the user's own may hold anything.
      if (!ArrayBuffer.isView(value)) return body.fail('incomplete_body')
      body.add(value)
    }
  } catch {
    body.fail('incomplete_body')
  }
}

/**
 * Reads the body of a request of `node:http`, by its events, which take no promise for each chunk. What comes after nothing
 * more is wanted is dropped.
 */
export function readIncoming(incoming: IncomingMessage, body: IncomingBody): void {
  if (incoming.destroyed) return body.fail('incomplete_body')
  incoming.on('data', (chunk: Uint8Array) => body.add(chunk))
  incoming.on('end', () => body.end())
  // Comes after the end too, when nothing is left to settle. Without a listener for errors, none is emitted.
  incoming.on('close', () => body.fail('incomplete_body'))
  // Whatever stands before may have paused it.
  incoming.resume()
  // Most webhooks come whole in the turn of their headers. A timer for each of them is time that shows in benchmarks.
  later(() => body.startTimer())
}

/** A JSON object, and the text that it was parsed from. */
interface ParsedObject {
  readonly text: string
  readonly value: Readonly<Record<string, unknown>>
}

/** Keeps nothing between two bodies, not even after one that is malformed. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The JSON object that these bytes are, undefined where they are anything else. */
export function parseObject(bytes: Uint8Array): ParsedObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { text, value } : undefined
  } catch {
    return undefined
  }
}
