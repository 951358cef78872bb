import { isObject, isText } from '../../protocol/json.ts'
import type { ResponseEvent, ResponseObject } from '../../protocol/response.ts'
import type { StreamMessage } from '../../transport/transport.ts'
import { objectIn, problemIn } from '../shapes/streamed-answer.ts'
import type { AnswerErrors, AnswerReader, AnswerStep } from '../shapes/streamed-answer.ts'
import { ResponseFailedError } from './response-failed-error.ts'
import { responseText } from './response-text.ts'

/** An event whose type the library does not know. New types may appear at any time. */
interface UnknownResponseEvent {
  readonly type: 'unknown'
  /** The event as received. */
  readonly data: Readonly<Record<string, unknown>>
}

/** An event of a streamed response. */
export type StreamedResponseEvent = ResponseEvent | UnknownResponseEvent

type Wire = Readonly<Record<string, unknown>>

/** The fields that each event must have, so that its type is true for the fields that users read first. */
const KNOWN: Readonly<Record<ResponseEvent['type'], (wire: Wire) => boolean>> = {
  'response.created': hasResponse,
  'response.in_progress': hasResponse,
  'response.output_item.added': (wire) => isObject(wire['item']),
  'response.content_part.added': (wire) => isObject(wire['part']),
  'response.output_text.delta': (wire) => typeof wire['delta'] === 'string',
  'response.output_text.done': (wire) => typeof wire['text'] === 'string',
  'response.content_part.done': (wire) => isObject(wire['part']),
  'response.output_item.done': (wire) => isObject(wire['item']),
  'response.completed': hasResponse,
  'response.failed': hasResponse,
}

/** Assembles a response from its events (§1), each of them once. */
export class ResponseReader implements AnswerReader<StreamedResponseEvent, ResponseObject> {
  readonly #errors: AnswerErrors
  readonly #redact: (text: string) => string
  /** The last sequence number. */
  #last: number | undefined
  /** How many events without a number have come since. */
  #unnumbered = 0
  /** The text of the parts before the current one. */
  #before = ''
  /** The text of the current part, whose position is `#part`. */
  #current = ''
  #part: string | undefined

  constructor(errors: AnswerErrors, redact: (text: string) => string) {
    this.#errors = errors
    this.#redact = redact
  }

  get text(): string {
    return this.#before + this.#current
  }

  read(message: StreamMessage): AnswerStep<StreamedResponseEvent, ResponseObject> {
    // Some services of this kind end every stream so.
    if (message.data.trim() === '[DONE]') throw this.#malformed('the stream ended before its last event')
    const wire = objectIn(message)
    const type = wire?.['type']
    // Events of other types may have their own error, such as an error of a tool.
    const problem = isText(type) && type !== 'error' ? undefined : problemIn(message.event, wire)
    if (problem !== undefined) throw this.#errors.failed(this.text, problem)
    if (wire === undefined) throw this.#malformed('an event is not a JSON object')
    if (!this.#isNext(wire['sequence_number'], type)) return {}
    const event = this.#eventOf(wire)
    switch (event.type) {
      case 'response.output_text.delta':
        this.#enter(event)
        this.#current += event.delta
        break
      case 'response.output_text.done':
        this.#enter(event)
        this.#current = event.text
        break
      case 'response.failed':
        throw new ResponseFailedError(this.#errors.request, this.text, event.response, this.#redact)
      case 'response.completed':
        this.#before = responseText(event.response)
        this.#current = ''
        return { event, final: event.response }
    }
    return { event }
  }

  /** Checks the sequence. Returns false for a repeated event. */
  #isNext(number: unknown, type: unknown): boolean {
    if (number == null) {
      this.#unnumbered += 1
      return true
    }
    if (typeof number !== 'number' || !Number.isSafeInteger(number))
      throw this.#malformed('the sequence_number of an event is not an integer')
    const last = this.#last
    // Services begin with 0 or 1.
    const first = type === 'response.created' ? 1 : 0
    // An event without a number may have taken one, or not.
    const highest = (last === undefined ? first : last + 1) + this.#unnumbered
    if (number > highest)
      throw this.#malformed(`events are missing: the sequence goes from ${last ?? 'nothing'} to ${number}`)
    if (last !== undefined && number <= last) return false
    this.#last = number
    this.#unnumbered = 0
    return true
  }

  #eventOf(wire: Wire): StreamedResponseEvent {
    const { type } = wire
    if (!isText(type) || !Object.hasOwn(KNOWN, type)) return { type: 'unknown', data: wire }
    if (!isKnown(wire)) throw this.#malformed(`an event ${type} does not have its content`)
    return wire
  }

  /** Makes the part of this event the current one. */
  #enter({ item_id, output_index, content_index }: Extract<ResponseEvent, { item_id: string }>): void {
    const part = JSON.stringify([item_id, output_index, content_index])
    if (part === this.#part) return
    this.#before += this.#current
    this.#current = ''
    this.#part = part
  }

  #malformed(reason: string): Error {
    return this.#errors.malformed(this.text, reason)
  }
}

function hasResponse({ response }: Wire): boolean {
  return isResponse(response)
}

/** Whether the value can be a response: an object with a list `output`. */
function isResponse(value: unknown): value is ResponseObject {
  return isObject(value) && Array.isArray(value['output'])
}

function isKnown(wire: Wire): wire is Wire & ResponseEvent {
  const { type } = wire
  return Object.entries(KNOWN).some(([known, fits]) => known === type && fits(wire))
}
