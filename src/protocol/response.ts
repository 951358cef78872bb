/* Shapes of `POST /v1/responses` (§1); what section 1 does not name is beyond the interface document. */

/** Every effort of a response's reasoning (§1). */
export const REASONING_EFFORTS = ['low', 'medium', 'high'] as const

/** A part of a message's content: `output_text` is the text of an earlier response. Beyond the interface document. */
export interface ResponseTextPart {
  readonly type: 'input_text' | 'output_text'
  readonly text: string
}

/** One message of a response's input (§1). Messages of an earlier response's output are accepted too. */
export interface ResponseMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant'
  readonly content: string | readonly ResponseTextPart[]
}

/** The body of `POST /v1/responses` (§1). */
export interface ResponseRequest {
  readonly model: string
  readonly input: string | readonly ResponseMessage[]
  /** Beyond the interface document. */
  readonly instructions?: string
  readonly reasoning?: { readonly effort?: (typeof REASONING_EFFORTS)[number] }
  readonly previous_response_id?: string
  readonly text?: {
    readonly format?:
      | { readonly type: 'text' }
      | {
          readonly type: 'json_schema'
          readonly name?: string
          readonly schema: Readonly<Record<string, unknown>>
        }
  }
  /** Whether the response is streamed. The client sets it. Default false. */
  readonly stream?: boolean
}

/**
 * A citation within the text of a response (§1). `text.slice(start_index, end_index)` is the cited part: the embedded service
 * counts UTF-16 code units, as JavaScript does.
 */
export interface UrlCitation {
  readonly type: 'url_citation'
  readonly url: string
  readonly title?: string | null
  readonly start_index: number
  readonly end_index: number
}

/** A text of a response, with its citations. */
export interface ResponseText {
  readonly type: 'output_text'
  readonly text: string
  readonly annotations: readonly UrlCitation[]
}

/** A message of a response. */
export interface ResponseOutputMessage {
  readonly type: 'message'
  readonly id: string
  readonly role: 'assistant'
  readonly status: 'in_progress' | 'completed' | 'incomplete'
  readonly content: readonly ResponseText[]
}

/** A response (§1). */
export interface ResponseObject {
  readonly id: string
  readonly object: 'response'
  /** Unix time in s. */
  readonly created_at: number
  readonly status: 'in_progress' | 'completed' | 'failed' | (string & {})
  readonly model: string
  readonly output: readonly ResponseOutputMessage[]
  readonly error?: { readonly code?: string | null; readonly message: string } | null
  readonly previous_response_id?: string | null
}

/** An event of a streamed response. */
interface Sequenced<Type extends string> {
  readonly type: Type
  /** Grows by one with each event of a stream. */
  readonly sequence_number: number
}

/** Which part of a response an event is about. */
interface ItemPart {
  readonly item_id: string
  readonly output_index: number
  readonly content_index: number
}

/** The events of a streamed response, in their order (§1). */
export type ResponseEvent =
  | (Sequenced<'response.created' | 'response.in_progress' | 'response.completed' | 'response.failed'> & {
      readonly response: ResponseObject
    })
  | (Sequenced<'response.output_item.added' | 'response.output_item.done'> & {
      readonly output_index: number
      readonly item: ResponseOutputMessage
    })
  | (Sequenced<'response.content_part.added' | 'response.content_part.done'> &
      ItemPart & { readonly part: ResponseText })
  | (Sequenced<'response.output_text.delta'> & ItemPart & { readonly delta: string })
  | (Sequenced<'response.output_text.done'> & ItemPart & { readonly text: string })
