import { Deadline } from './deadline.ts'
import type { DeadlineListener } from './deadline.ts'
import { ConnectionError, ProtocolError } from './errors.ts'
import type { ConnectionFailure } from './errors.ts'
import type { Flow, HeaderReader, ResponseSink, WireRequest } from './exchange.ts'

/** How an implementation of the exchange controls its socket. */
export interface Wire {
  /** Stops reading. */
  pause(): void
  /** Continues to read. */
  resume(): void
  /** Destroys the socket, or prevents it from being opened. May be called before anything else. */
  destroy(): void
}

/**
 * One response, passed on to its sink by the rules of {@link Exchange} for both implementations. Each phase has a timeout.
 * Exactly one of `end` and `error` is called, and nothing after `abort`. A sink that throws ends only its own response.
 */
export class Incoming implements Flow, DeadlineListener {
  readonly #request: WireRequest
  readonly #sink: ResponseSink
  readonly #wire: Wire
  readonly #deadline: Deadline
  #phase: 'connect_timeout' | 'headers_timeout' | 'silence' = 'connect_timeout'
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

  /** Whether the response has ended, failed or been aborted: the sink is called no more. */
  get over(): boolean {
    return this.#over
  }

  /** The connection is being made. */
  connecting(): void {
    this.#deadline.set(this.#request.timeouts.connect)
  }

  /** The request is being sent. From here on the service may have acted on it. */
  sending(): void {
    if (this.#over) return
    this.#phase = 'headers_timeout'
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

  /** Bytes arrived: restarts the idle timeout, unless the flow is paused. */
  alive(): void {
    if (!this.#paused) this.#deadline.set(this.#request.timeouts.silence)
  }

  end(): void {
    if (this.#over) return
    this.#close()
    try {
      this.#sink.end()
    } catch {
      // The sink has had its last call, so the error cannot be reported to it.
    }
  }

  /** The connection could not be made, or it broke. */
  broken(failure: ConnectionFailure, cause: unknown): void {
    const { origin } = this.#request
    const text = {
      refused: `no connection to ${origin}`,
      connect_timeout: `no connection to ${origin} in time`,
      headers_timeout: 'no response in time',
      silence: 'the connection was idle for too long',
      broken: 'the connection broke',
    }[failure]
    this.#fail(failure, `${text}${reason(cause)}`, cause)
  }

  /** The body cannot be decoded. */
  malformed(message: string, cause?: unknown): void {
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

  onDeadline(): void {
    this.#fail(this.#phase, this.#timeoutMessage())
  }

  #timeoutMessage(): string {
    const { origin, timeouts } = this.#request
    if (this.#phase === 'connect_timeout') return `no connection to ${origin} within ${timeouts.connect} ms`
    if (this.#phase === 'headers_timeout') return `no response within ${timeouts.headers} ms`
    return `no data received for ${timeouts.silence} ms`
  }

  #thrown(thrown: unknown): void {
    this.#fail('broken', 'the reader of the response threw', thrown)
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

/** The platform's code for what happened, such as ` (ECONNRESET)`, or its message. */
function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return ''
  if ('code' in cause && typeof cause.code === 'string') return ` (${cause.code})`
  // The message of an error of `fetch` is generic; its cause is specific.
  return cause.cause instanceof Error ? reason(cause.cause) : ` (${cause.message})`
}
