import type { FieldBasis } from './output.ts'

/* Shapes of chat completions. All of this file is beyond the interface document. */

/** Every model of chat completions; all but `speed` are processors of task runs. */
export const CHAT_MODELS = ['speed', 'lite', 'base', 'core'] as const

/** A part of a message's content. Generated clients send a list of them instead of a string. */
export interface ChatTextPart {
  readonly type: 'text'
  readonly text: string
}

/** One message of a conversation. */
export interface ChatMessage {
  /** `developer` is a newer name of `system`. */
  readonly role: 'system' | 'developer' | 'user' | 'assistant'
  readonly content: string | readonly ChatTextPart[]
}

/** The form of the answer. */
export type ChatFormat =
  | { readonly type: 'text' }
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema'
      readonly json_schema: { readonly name?: string; readonly schema: Readonly<Record<string, unknown>> }
    }

/** The body of `POST /v1beta/chat/completions`. Sampling parameters of the common form are accepted and ignored. */
export interface ChatRequest {
  /** One of {@link CHAT_MODELS}, or another that the service knows. */
  readonly model: string
  /** The conversation, oldest first; at least one message. */
  readonly messages: readonly ChatMessage[]
  /** Default text. */
  readonly response_format?: ChatFormat
  /** The `interaction_id` of an earlier answer or run, to continue with its context. */
  readonly previous_interaction_id?: string
  /** Whether the answer is streamed. The client sets it. Default false. */
  readonly stream?: boolean
  /** With `include_usage` the last chunk of a stream has the usage, and no choices. */
  readonly stream_options?: { readonly include_usage?: boolean }
}

/** How long a question and its answer are. */
export interface ChatUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
}

/** Why an answer ended. */
export type FinishReason = 'stop' | 'length' | (string & {})

/** A chat completion. */
export interface ChatCompletion {
  readonly id: string
  readonly object: 'chat.completion'
  /** Time of creation, Unix s. */
  readonly created: number
  readonly model: string
  readonly choices: readonly {
    readonly index: number
    readonly message: { readonly role: 'assistant'; readonly content: string | null }
    readonly finish_reason: FinishReason | null
  }[]
  /** The sources of the answer; absent with the model `speed`. */
  readonly basis?: readonly FieldBasis[] | null
  /** Passed as `previous_interaction_id` to continue with its context. */
  readonly interaction_id?: string | null
  readonly usage?: ChatUsage | null
}

/** A part of a streamed chat completion. */
export interface ChatChunk {
  readonly id: string
  readonly object: 'chat.completion.chunk'
  /** Time of creation, Unix s. */
  readonly created: number
  readonly model: string
  readonly choices: readonly {
    readonly index: number
    readonly delta: { readonly role?: 'assistant' | null; readonly content?: string | null }
    readonly finish_reason?: FinishReason | null
  }[]
  readonly basis?: readonly FieldBasis[] | null
  readonly interaction_id?: string | null
  readonly usage?: ChatUsage | null
}

/** The response of `GET /v1/models` and `GET /v1beta/models`. */
export interface ModelList {
  readonly object: 'list'
  readonly data: readonly {
    readonly id: string
    readonly object: 'model'
    /** Time of creation, Unix s. */
    readonly created: number
    readonly owned_by: string
  }[]
}
