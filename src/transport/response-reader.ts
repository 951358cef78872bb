import { parseJson } from '../protocol/json.ts'
import { oneLine } from '../protocol/one-line.ts'
import { ProtocolError } from './errors.ts'
import type { ConnectionError, RequestError } from './errors.ts'
import type { Flow, HeaderReader, ResponseSink } from './exchange.ts'
import type { ResponseContext } from './response-context.ts'
import { redactError } from './redact.ts'
import { apiErrorOf, MAX_EXCERPT } from './retry-policy.ts'
import { cutText } from '../protocol/cut-text.ts'

/** The response to a single request. */
export interface ApiResponse {
  readonly status: number
  /** Reads one header, by its name in lower case. */
  readonly header: HeaderReader
  /** The parsed JSON; undefined if the body is empty. */
  readonly body: unknown
}

/** The content that a 2xx must have. `JSON or nothing` allows an empty body. */
export type Expected = 'JSON' | 'JSON or nothing' | 'an event stream'

/** How much of an error body is read, in bytes: more than any error body of the interface has. */
const MAX_ERROR_BODY = 65_536

/** Reads one response to its end. Calls `done` with an expected 2xx, and `failed` with the error for any other. */
export class ResponseReader implements ResponseSink {
  /** Controls the response. Set before anything arrives. */
  flow: Flow | undefined
  readonly #context: ResponseContext
  readonly #expected: Expected
  readonly #done: (response: ApiResponse) => void
  readonly #failed: (error: RequestError) => void
  readonly #decoder = new TextDecoder()
  #status = 0
  #header: HeaderReader = () => undefined
  #size = 0
  #text = ''

  constructor(
    context: ResponseContext,
    expected: Expected,
    done: (response: ApiResponse) => void,
    failed: (error: RequestError) => void,
  ) {
    this.#context = context
    this.#expected = expected
    this.#done = done
    this.#failed = failed
  }

  head(status: number, header: HeaderReader): void {
    this.#status = status
    this.#header = header
    // Following a redirect would send the key to another server.
    if (status < 200 || (status >= 300 && status < 400))
      this.#refuse(`answered with ${status}, which is never followed`, false)
    else if (this.#ok && Number(header('content-length') ?? 0) > this.#context.maxBodyBytes) this.#tooLarge()
  }

  chunk(bytes: Uint8Array): void {
    if (this.#ok && !this.#asExpected) return this.#refuseOther(this.#decoder.decode(bytes))
    this.#size += bytes.byteLength
    if (this.#ok && this.#size > this.#context.maxBodyBytes) return this.#tooLarge()
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
    // The status is enough to report the failure, even if the rest of the response never arrives.
    if (this.#status !== 0 && !this.#ok) this.#finishRefusal()
    else if (this.#ok && this.#expected === 'an event stream') this.#refuseOther('')
    else this.#failed(redactError(error, this.#context.redact))
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
    this.#failed(apiErrorOf(this.#context, this.#status, this.#header, this.#text))
  }

  /** Refuses a 2xx that is not of the expected type. `beginning` is the part of its body that has arrived. */
  #refuseOther(beginning: string): void {
    const type = describeType(this.#header, this.#context)
    const what = beginning === '' && type === 'no content type' ? 'no content' : type
    const expected = this.#expected === 'an event stream' ? 'an event stream' : 'JSON'
    const excerpt = isText(this.#header('content-type')) ? excerptOf(beginning, this.#context) : ''
    const quoted = excerpt === '' ? '' : `: ${JSON.stringify(excerpt)}`
    this.#refuse(`answered with ${this.#status} and ${what} where ${expected} was expected${quoted}`)
  }

  #tooLarge(): void {
    this.#refuse(`the response is larger than ${this.#context.maxBodyBytes} bytes`, false)
  }

  #refuse(message: string, retryable = true): void {
    this.flow?.abort()
    this.#failed(new ProtocolError(message, this.#context.request, { retryable }))
  }
}

function isJson(type: string | undefined): boolean {
  return type !== undefined && /^\s*application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)
}

function isText(type: string | undefined): boolean {
  return type === undefined || isJson(type) || /^\s*(text\/|application\/(xml|xhtml))/i.test(type)
}

/** The beginning of a longer body, without its last word, which may be a part of the key. */
function excerptOf(beginning: string, { redact }: ResponseContext): string {
  return oneLine(redact(beginning).replace(/[^\s<>"'(){}[\],;]+$/, ''), MAX_EXCERPT)
}

/** The response's content type, as text for a message. */
function describeType(header: HeaderReader, { redact }: ResponseContext): string {
  const type = header('content-type')
  return type === undefined ? 'no content type' : cutText(redact(type), 80)
}
