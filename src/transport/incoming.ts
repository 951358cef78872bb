import { Deadline } from './deadline.ts'
import type { DeadlineListener } from './deadline.ts'
import { ConnectionError, ProtocolError } from './errors.ts'
import type { ConnectionFailure } from './errors.ts'
import type { Flow, HeaderReader, ResponseSink, WireRequest } from './exchange.ts'

/** What a body of the exchange does to its socket. */
export interface Wire {
  /** Reads no more. */
  pause(): void
  /** Reads again. */
  resume(): void
  /** Destroys the socket, or makes sure that there never is one. May be called before anything else. */
  destroy(): void
}

/**
 * One response on its way to its sink. It keeps the promises of the exchange's face for both of its bodies: each phase
 * ends in time, the last word is said once, nothing is said after `abort`, and a sink that throws ends its own response
 * and nothing else.
 */
export class Incoming implements Flow, DeadlineListener {
  readonly #request: WireRequest
  readonly #sink: ResponseSink
  readonly #wire: Wire
  readonly #deadline: Deadline
  #phase: 'connect-timeout' | 'headers-timeout' | 'silence' = 'connect-timeout'
  #paused = false
  #over = false

  constructor(request: WireRequest, sink: ResponseSink, wire: Wire) {
    this.#request = request
    this.#sink = sink
    this.#wire = wire
    this.#deadline = new Deadline(this)
  }

  get paused(): boolean {
    return this.#paused
  }

  /** Whether the sink hears no more. */
  get over(): boolean {
    return this.#over
  }

  /** The connection is being made. */
  connecting(): void {
    this.#deadline.set(this.#request.timeouts.connect)
  }

  /** The request goes out; from here on the service may have taken it. */
  sending(): void {
    if (this.#over) return
    this.#phase = 'headers-timeout'
    this.#deadline.set(this.#request.timeouts.headers)
  }

  head(status: number, header: HeaderReader): void {
    if (this.#over) return
    this.#phase = 'silence'
    this.#deadline.set(this.#paused ? Infinity : this.#request.timeouts.silence)
    try {
      this.#sink.head(status, header)
    } catch (thrown) {
      this.#thrown(thrown)
    }
  }

  chunk(bytes: Uint8Array): void {
    if (this.#over) return
    this.alive()
    try {
      this.#sink.chunk(bytes)
    } catch (thrown) {
      this.#thrown(thrown)
    }
  }

  /** Bytes came: silence begins anew, unless the reader holds the flow. */
  alive(): void {
    if (!this.#paused) this.#deadline.set(this.#request.timeouts.silence)
  }

  end(): void {
    if (this.#over) return
    this.#close()
    try {
      this.#sink.end()
    } catch {
      // It has had its last call; there is nobody left to tell.
    }
  }

  /** The connection failed: it could not be made, or it broke. */
  broken(failure: ConnectionFailure, cause: unknown): void {
    const { origin } = this.#request
    const text = {
      refused: `no connection to ${origin}`,
      'connect-timeout': `no connection to ${origin} in time`,
      'headers-timeout': 'no answer in time',
      silence: 'the connection fell silent',
      broken: 'the connection broke',
    }[failure]
    this.#fail(failure, `${text}${reason(cause)}`, cause)
  }

  /** What came cannot be read as what it was announced to be. */
  garbled(message: string, cause?: unknown): void {
    this.#report(new ProtocolError(message, this.#request, { cause }))
  }

  pause(): void {
    if (this.#over || this.#paused) return
    this.#paused = true
    if (this.#phase === 'silence') this.#deadline.set(Infinity)
    this.#wire.pause()
  }

  resume(): void {
    if (this.#over || !this.#paused) return
    this.#paused = false
    if (this.#phase === 'silence') this.alive()
    this.#wire.resume()
  }

  abort(): void {
    if (this.#over) return
    this.#close()
    this.#wire.destroy()
  }

  late(): void {
    this.#fail(this.#phase, this.#lateness())
  }

  #lateness(): string {
    const { origin, timeouts } = this.#request
    if (this.#phase === 'connect-timeout') return `no connection to ${origin} within ${timeouts.connect} ms`
    if (this.#phase === 'headers-timeout') return `no answer within ${timeouts.headers} ms`
    return `nothing came for ${timeouts.silence} ms`
  }

  #thrown(thrown: unknown): void {
    this.#fail('broken', 'the reader of the answer threw', thrown)
  }

  #fail(failure: ConnectionFailure, message: string, cause?: unknown): void {
    const options = cause === undefined ? undefined : { cause }
    this.#report(new ConnectionError(failure, message, this.#request, options))
  }

  #report(error: ConnectionError | ProtocolError): void {
    if (this.#over) return
    this.abort()
    try {
      this.#sink.error(error)
    } catch {
      // As in `end`.
    }
  }

  #close(): void {
    this.#over = true
    this.#deadline.clear()
  }
}

/** The platform's own short word for what happened, such as ` (ECONNRESET)`. */
function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  if ('code' in cause && typeof cause.code === 'string') return ` (${cause.code})`
  // What fetch throws says nothing itself.
  return cause.cause instanceof Error ? reason(cause.cause) : ` (${cause.message})`
}
