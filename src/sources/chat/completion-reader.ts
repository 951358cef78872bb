import type { ChatChunk, ChatCompletion, FinishReason } from '../../protocol/chat.ts'
import { isObject, isText } from '../../protocol/json.ts'
import type { FieldBasis } from '../../protocol/output.ts'
import type { StreamMessage } from '../../transport/transport.ts'
import { objectIn, problemIn } from '../shapes/streamed-answer.ts'
import type { AnswerErrors, AnswerReader, AnswerStep } from '../shapes/streamed-answer.ts'

/** The part of a choice in one chunk. */
type ChoiceDelta = ChatChunk['choices'][number]

/** One of the answers of a completion. */
interface Choice {
  content: string | null
  finishReason: FinishReason | null
}

/** Assembles a chat completion from its chunks. */
export class CompletionReader implements AnswerReader<ChatChunk, ChatCompletion> {
  readonly #errors: AnswerErrors
  readonly #choices = new Map<number, Choice>()
  /** The other fields of the chunks; a later value replaces an earlier one. */
  readonly #fields = new Map<string, unknown>()
  /** The entries of each field of the basis. */
  #basis: Map<string, readonly FieldBasis[]> | undefined

  constructor(errors: AnswerErrors) {
    this.#errors = errors
  }

  /** The text of the first choice. */
  get text(): string {
    return this.#choices.get(0)?.content ?? ''
  }

  read(message: StreamMessage): AnswerStep<ChatChunk, ChatCompletion> {
    if (message.data.trim() === '[DONE]') return { final: this.#completion() }
    const value = objectIn(message)
    const problem = problemIn(message.event, value)
    if (problem !== undefined) throw this.#errors.failed(this.text, problem)
    if (value === undefined) throw this.#malformed('a chunk is not a JSON object')
    const chunk = this.#chunkOf(value)
    for (const choice of chunk.choices) this.#append(choice)
    this.#keep(chunk)
    return { event: chunk }
  }

  #chunkOf(value: Readonly<Record<string, unknown>>): ChatChunk {
    const { id, created, model, basis, interaction_id } = value
    const choices = value['choices'] ?? []
    if (!Array.isArray(choices)) throw this.#malformed('the choices of a chunk are not a list')
    return {
      ...value,
      id: isText(id) ? id : '',
      object: 'chat.completion.chunk',
      created: typeof created === 'number' ? created : 0,
      model: isText(model) ? model : '',
      choices: choices.map((choice: unknown, place) => this.#choiceOf(choice, place)),
      ...(basis !== undefined && { basis: Array.isArray(basis) ? basis.filter(isBasis) : null }),
      ...(interaction_id !== undefined && { interaction_id: isText(interaction_id) ? interaction_id : null }),
    }
  }

  /** @param place The position in the list, which is the index if a service omits it. */
  #choiceOf(value: unknown, place: number): ChoiceDelta {
    if (!isObject(value)) throw this.#malformed('a choice is not an object')
    const index = value['index'] ?? place
    const delta = value['delta'] ?? {}
    const reason = value['finish_reason'] ?? null
    if (!isIndex(index)) throw this.#malformed('the index of a choice is not a number from 0')
    if (!isObject(delta)) throw this.#malformed('the delta of a choice is not an object')
    const { content } = delta
    if (content != null && typeof content !== 'string')
      throw this.#malformed('the content of a choice is not a text')
    if (reason !== null && typeof reason !== 'string')
      throw this.#malformed('the finish_reason of a choice is not a text')
    return {
      ...value,
      index,
      delta: { ...delta, ...(content !== undefined && { content }) },
      finish_reason: reason,
    }
  }

  #append({ index, delta: { content }, finish_reason = null }: ChoiceDelta): void {
    const choice = this.#choices.get(index) ?? { content: null, finishReason: null }
    this.#choices.set(index, choice)
    if (content != null) choice.content = (choice.content ?? '') + content
    choice.finishReason = finish_reason ?? choice.finishReason
  }

  #keep({ choices: _choices, basis, ...fields }: ChatChunk): void {
    for (const [name, value] of Object.entries(fields)) {
      const isAbsent = value === null || value === '' || (name === 'created' && value === 0)
      if (!isAbsent) this.#fields.set(name, value)
    }
    if (basis == null) return
    // Services send the whole basis at the end, or the entries of a field once they are known.
    this.#basis ??= new Map()
    for (const [field, entries] of Map.groupBy(basis, (entry) => entry.field)) this.#basis.set(field, entries)
  }

  #completion(): ChatCompletion {
    if (this.#choices.size === 0) throw this.#malformed('the stream has no choice')
    const choices = [...this.#choices].toSorted(([one], [other]) => one - other)
    const { id, created, model, interaction_id, ...others } = Object.fromEntries(this.#fields)
    return {
      ...others,
      id: isText(id) ? id : '',
      object: 'chat.completion',
      created: typeof created === 'number' ? created : 0,
      model: isText(model) ? model : '',
      choices: choices.map(([index, { content, finishReason }]) => ({
        index,
        message: { role: 'assistant', content },
        finish_reason: finishReason,
      })),
      ...(this.#basis !== undefined && { basis: [...this.#basis.values()].flat() }),
      ...(isText(interaction_id) && { interaction_id }),
    }
  }

  #malformed(reason: string): Error {
    return this.#errors.malformed(this.text, reason)
  }
}

function isIndex(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Whether the value has the fields of a basis that the library reads. */
function isBasis(value: unknown): value is FieldBasis {
  return isObject(value) && isText(value['field'])
}
