import { createParser } from 'eventsource-parser'
import { isObject, isText } from '../../protocol/json.ts'
import { ModelError } from './model-error.ts'

/** Maximum length of an answer, and of one event of its stream, in characters. */
const MAX_LENGTH = 1_000_000

/** Assembles the text of a streamed chat completion. Each method throws a {@link ModelError} for a stream that cannot be used. */
export class CompletionStream {
  readonly #parser
  #text = ''
  #ended = false

  constructor() {
    this.#parser = createParser({
      onEvent: ({ data }) => this.#read(data),
      maxBufferSize: MAX_LENGTH,
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') throw tooLong()
      },
    })
  }

  /** Adds a part of the body. */
  add(chunk: string): void {
    this.#parser.feed(chunk)
  }

  /** The whole text, at the end of the body. */
  end(): string {
    // A line without its end is read too: some servers close right after it.
    this.#parser.feed('\n\n')
    if (!this.#ended) throw new ModelError('the stream ended before the answer did', { isTransient: true })
    return this.#text
  }

  #read(data: string): void {
    if (data.trim() === '[DONE]') {
      this.#ended = true
      return
    }
    const { text, isOver } = partOf(parsed(data), 'delta')
    this.#text += text
    this.#ended ||= isOver
    if (this.#text.length > MAX_LENGTH) throw tooLong()
  }
}

/** The text of a completion that is not streamed. Throws a {@link ModelError} for one without a text. */
export function completionText(body: string): string {
  const { text, isOver } = partOf(parsed(body), 'message')
  if (!isOver && text === '') throw new ModelError('the response has no text')
  return text
}

/** Bodies above this length, in characters, are refused. */
export const MAX_BODY = 4 * MAX_LENGTH

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new ModelError('the server sent no JSON', { cause })
  }
}

/** The text of the first choice, and whether it ends there. */
function partOf(
  body: unknown,
  name: 'delta' | 'message',
): { readonly text: string; readonly isOver: boolean } {
  if (!isObject(body)) throw new ModelError('the server sent no object')
  if (isObject(body['error'])) {
    const { message } = body['error']
    throw new ModelError(`the server failed: ${isText(message) ? message : 'without a reason'}`, {
      isTransient: true,
    })
  }
  const choices: unknown = body['choices']
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
  // Usage comes in an event without a choice.
  if (!isObject(choice)) return { text: '', isOver: false }
  if (choice['finish_reason'] === 'length')
    throw new ModelError('the answer was cut at the limit of its length')
  const part = choice[name]
  const content = isObject(part) ? part['content'] : undefined
  return { text: typeof content === 'string' ? content : '', isOver: isText(choice['finish_reason']) }
}

function tooLong(): ModelError {
  return new ModelError(`the answer is longer than ${MAX_LENGTH} characters`)
}
