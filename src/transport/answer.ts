import { parseJson } from '../protocol/json.ts'
import { ProtocolError } from './errors.ts'
import type { ConnectionError, RivuletError } from './errors.ts'
import type { Flow, HeaderReader, ResponseSink } from './exchange.ts'
import type { Reading } from './reading.ts'
import { redactError } from './redact.ts'
import { refusalOf } from './retry-policy.ts'

/** The answer to a single request. */
export interface ApiResponse {
  readonly status: number
  /** Reads one header, by its name in lower case. */
  readonly header: HeaderReader
  /** The parsed JSON; undefined where the body is empty. */
  readonly body: unknown
}

/** What a 2xx has to bring: `JSON or nothing` is an answer as well. */
export type Expected = 'JSON' | 'JSON or nothing' | 'an event stream'

/** How much of an error body is read, in bytes: more than any of the interface's takes. */
const MAX_ERROR_BODY = 65_536

/** How much of a body that was not asked for goes into an error's message, in characters. */
const MAX_EXCERPT = 200

/** Reads one answer to its end: a 2xx with what is expected, or the error that it stands for. */
export class Answer implements ResponseSink {
  /** The reader's hold on the response, set before anything comes. */
  flow: Flow | undefined
  readonly #reading: Reading
  readonly #expected: Expected
  readonly #done: (response: ApiResponse) => void
  readonly #failed: (error: RivuletError) => void
  readonly #decoder = new TextDecoder()
  #status = 0
  #header: HeaderReader = () => undefined
  #size = 0
  #text = ''

  constructor(
    reading: Reading,
    expected: Expected,
    done: (response: ApiResponse) => void,
    failed: (error: RivuletError) => void,
  ) {
    this.#reading = reading
    this.#expected = expected
    this.#done = done
    this.#failed = failed
  }

  head(status: number, header: HeaderReader): void {
    this.#status = status
    this.#header = header
    // Followed, a redirect would take the key to wherever it points.
    if (status < 200 || (status >= 300 && status < 400))
      this.#refuse(`answered with ${status}, which is never followed`, false)
    else if (this.#ok && Number(header('content-length') ?? 0) > this.#reading.maxBodyBytes) this.#tooLarge()
  }

  chunk(bytes: Uint8Array): void {
    if (this.#ok && !this.#asExpected) return this.#refuseOther(this.#decoder.decode(bytes))
    this.#size += bytes.byteLength
    if (this.#ok && this.#size > this.#reading.maxBodyBytes) return this.#tooLarge()
    this.#text += this.#decoder.decode(bytes, { stream: true })
    if (this.#ok || this.#size <= MAX_ERROR_BODY) return
    this.flow?.abort()
    this.#finishRefusal()
  }

  end(): void {
    this.#text += this.#decoder.decode()
    if (this.#ok) this.#finish()
    else this.#finishRefusal()
  }

  error(error: ConnectionError | ProtocolError): void {
    // The status alone says what happened, even if the rest of the answer never comes.
    if (this.#status !== 0 && !this.#ok) this.#finishRefusal()
    else if (this.#ok && this.#expected === 'an event stream') this.#refuseOther('')
    else this.#failed(redactError(error, this.#reading.redact))
  }

  get #ok(): boolean {
    return this.#status >= 200 && this.#status < 300
  }

  get #asExpected(): boolean {
    return this.#expected !== 'an event stream' && isJson(this.#header('content-type'))
  }

  #finish(): void {
    const response = { status: this.#status, header: this.#header }
    if (this.#size === 0) {
      if (this.#expected === 'JSON or nothing') this.#done({ ...response, body: undefined })
      else this.#refuseOther('')
      return
    }
    const body = parseJson(this.#text)
    if (body === undefined) return this.#refuse(`answered with ${this.#size} bytes that are not JSON`)
    this.#done({ ...response, body })
  }

  #finishRefusal(): void {
    this.#failed(refusalOf(this.#reading, this.#status, this.#header, this.#text))
  }

  /** A 2xx that is not what was asked for. `beginning` is what has come of its body. */
  #refuseOther(beginning: string): void {
    const type = describeType(this.#header, this.#reading)
    const what = beginning === '' && type === 'no content type' ? 'no content' : type
    const expected = this.#expected === 'an event stream' ? 'an event stream' : 'JSON'
    const excerpt = isText(this.#header('content-type')) ? excerptOf(beginning, this.#reading) : ''
    const quoted = excerpt === '' ? '' : `: ${JSON.stringify(excerpt)}`
    this.#refuse(`answered with ${this.#status} and ${what} where ${expected} was expected${quoted}`)
  }

  #tooLarge(): void {
    this.#refuse(`the answer is larger than ${this.#reading.maxBodyBytes} bytes`, false)
  }

  #refuse(message: string, retryable = true): void {
    this.flow?.abort()
    this.#failed(new ProtocolError(message, this.#reading.request, { retryable }))
  }
}

function isJson(type: string | undefined): boolean {
  return type !== undefined && /^\s*application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)
}

function isText(type: string | undefined): boolean {
  return type === undefined || isJson(type) || /^\s*(text\/|application\/(xml|xhtml))/i.test(type)
}

/** The beginning of a body that goes on: its last word may be the beginning of the key. */
function excerptOf(beginning: string, { redact }: Reading): string {
  return redact(beginning)
    .replace(/[^\s<>"'(){}[\],;]+$/, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_EXCERPT)
}

/** The answer's content type, as text for a message. */
function describeType(header: HeaderReader, { redact }: Reading): string {
  const type = header('content-type')
  return type === undefined ? 'no content type' : redact(type).slice(0, 80)
}
