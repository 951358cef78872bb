import { setTimeout as delay } from 'node:timers/promises'
import pRetry from 'p-retry'
import { Agent, type Dispatcher, request } from 'undici'
import { INITIAL_DELAY, retryDelay } from '../../protocol/backoff.ts'
import { isObject } from '../../protocol/json.ts'
import { parseRetryAfter } from '../../protocol/retry-after-header.ts'
import { redactor } from '../tool-servers/redactor.ts'
import { completionText, CompletionStream, MAX_BODY } from './completion-stream.ts'
import { ModelError } from './model-error.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** A model behind an OpenAI-compatible interface. */
export interface ModelOptions {
  /** The base URL of the interface, such as `http://127.0.0.1:11434/v1`; `chat/completions` is requested below it. */
  readonly url: string
  /** The name of the model. */
  readonly name: string
  /** Sent as a Bearer token. Default: none. */
  readonly apiKey?: string
}

/** A message of a conversation. */
export interface ModelMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** Limits of a request to a model server. */
export interface ModelLimits {
  /** How long the server may send nothing, in ms of real time. Default 60,000, since a server may load the model first. */
  readonly silence?: number
  /** How long an answer may take in all, with its repeated requests, in ms of real time. Default 300,000. */
  readonly total?: number
  /** Upper bound of the first delay before a failed request is sent again, in ms of real time. Default 500. */
  readonly pause?: number
  /** Waits before a request is sent again, in ms of real time. Default: a timer. */
  readonly wait?: (time: number, signal: AbortSignal) => Promise<void>
}

const SILENCE = 60_000
const TOTAL = 300_000
const PAUSE = INITIAL_DELAY
/** How often a failed request is sent again. */
const RETRIES = 2
/** The longest `Retry-After` that is waited for, in ms. After a longer one, an earlier request would be refused again. */
const MAX_WAIT = 60_000
/** Maximum length of an error's message, which may quote the server, in characters. */
const MAX_MESSAGE = 300

/** Requests answers of a model. Beyond the interface document. */
export class ModelServer {
  readonly #url: string
  readonly #options: ModelOptions
  readonly #limits: Required<ModelLimits>
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  readonly #redact: (text: string) => string
  /** Whether the server accepts `response_format`; not every one does. */
  #acceptsFormat = true

  constructor(
    options: ModelOptions,
    { silence = SILENCE, total = TOTAL, pause = PAUSE, wait = waitReally }: ModelLimits = {},
  ) {
    this.#url = `${options.url.replace(/\/+$/, '')}/chat/completions`
    this.#options = options
    this.#limits = { silence, total, pause, wait }
    this.#redact = redactor(options.apiKey === undefined ? [] : [options.apiKey])
  }

  /**
   * Resolves with the model's answer, which should be JSON. The request is repeated after a transient failure, and after the
   * `Retry-After` of the server, unless that is too long. Rejects with a {@link ModelError}, or with the signal's reason.
   */
  async complete(messages: readonly ModelMessage[], signal: AbortSignal): Promise<string> {
    const { total, pause, wait } = this.#limits
    const latest = performance.now() + total
    return await pRetry(() => this.#attempt(messages, latest, signal), {
      retries: RETRIES,
      minTimeout: 0,
      signal,
      async shouldRetry({ error, attemptNumber }) {
        if (!(error instanceof ModelError) || !error.isTransient) return false
        const time = retryDelay(error, attemptNumber - 1, { initialDelay: pause })
        if (time > Math.min(MAX_WAIT, latest - performance.now())) return false
        await wait(time, signal)
        return true
      },
    })
  }

  /** Aborts all requests. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }

  /** `latest` is when the answer has to be complete, on the clock of `performance`. */
  async #attempt(messages: readonly ModelMessage[], latest: number, outer: AbortSignal): Promise<string> {
    const { silence, total } = this.#limits
    const left = Math.max(0, latest - performance.now())
    const controller = new AbortController()
    const late = (error: ModelError) => () => controller.abort(error)
    const whole = setTimeout(late(new ModelError(`no complete answer within ${total} ms`)), left)
    const silent = new ModelError(`the server sent nothing for ${silence} ms`, { isTransient: true })
    const quiet = setTimeout(late(silent), silence)
    const signal = AbortSignal.any([outer, controller.signal])
    try {
      const response = await this.#send(messages, signal)
      quiet.refresh()
      if (response.statusCode !== 200) return await this.#refused(messages, response, latest, outer)
      return await replyText(response, () => quiet.refresh())
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ModelError) throw this.#redacted(error)
      throw new ModelError(`the server cannot be reached${codeOf(error)}`, { isTransient: true })
    } finally {
      clearTimeout(whole)
      clearTimeout(quiet)
    }
  }

  #send(messages: readonly ModelMessage[], signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { name, apiKey } = this.#options
    return request(this.#url, {
      method: 'POST',
      dispatcher: this.#agent,
      signal,
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream, application/json',
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify({
        model: name,
        messages,
        // A stream shows that the server still works on the answer.
        stream: true,
        temperature: 0,
        ...(this.#acceptsFormat && { response_format: { type: 'json_object' } }),
      }),
    })
  }

  async #refused(
    messages: readonly ModelMessage[],
    { statusCode, headers, body }: Dispatcher.ResponseData,
    latest: number,
    signal: AbortSignal,
  ): Promise<string> {
    const text = await bodyText(body, () => undefined)
    if (statusCode === 400 && this.#acceptsFormat && text.includes('response_format')) {
      this.#acceptsFormat = false
      return await this.#attempt(messages, latest, signal)
    }
    const isTransient = statusCode === 408 || statusCode === 429 || statusCode >= 500
    const [asked, date] = [[headers['retry-after']].flat()[0], [headers['date']].flat()[0]]
    const retryAfter = (isTransient ? parseRetryAfter(asked, date, Date.now()) : undefined) ?? 0
    const wait = retryAfter > 0 ? `, and asks to wait ${Math.ceil(retryAfter / 1_000)} s` : ''
    const message = `the server answered with ${statusCode}${wait}${reasonIn(text)}`
    throw new ModelError(message, { isTransient, retryAfter })
  }

  #redacted({ message, isTransient, retryAfter }: ModelError): ModelError {
    // In this order, since a part of a secret is not recognised.
    return new ModelError(cutText(this.#redact(message), MAX_MESSAGE), { isTransient, retryAfter })
  }
}

async function waitReally(time: number, signal: AbortSignal): Promise<void> {
  await delay(time, undefined, { signal }).catch(() => signal.throwIfAborted())
}

async function replyText({ headers, body }: Dispatcher.ResponseData, onChunk: () => void): Promise<string> {
  const isStream = String(headers['content-type'] ?? '').startsWith('text/event-stream')
  if (!isStream) return completionText(await bodyText(body, onChunk))
  const stream = new CompletionStream()
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    onChunk()
    stream.add(decoder.decode(chunk, { stream: true }))
  }
  return stream.end()
}

async function bodyText(body: Dispatcher.ResponseData['body'], onChunk: () => void): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) {
    onChunk()
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MAX_BODY) throw new ModelError('the response is too long')
  }
  return text
}

/** The server's own reason, if it states one. */
function reasonIn(text: string): string {
  try {
    const body: unknown = JSON.parse(text)
    const error = isObject(body) ? body['error'] : undefined
    const message = isObject(error) ? error['message'] : error
    return typeof message === 'string' ? `: ${message}` : ''
  } catch {
    return ''
  }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? ` (${code})` : ''
}
