import { chatRequest } from '../../../protocol/requests/chat.ts'
import { chatCompletion, chatStreamMessage, modelList } from '../answers/chat.ts'
import type { Endpoint } from '../endpoint.ts'

/** The parameters of the common form that are accepted and ignored. Parameters of a newer form are ignored, too. */
export const IGNORED = [
  'audio',
  'frequency_penalty',
  'function_call',
  'functions',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'metadata',
  'modalities',
  'moderation',
  'n',
  'parallel_tool_calls',
  'prediction',
  'presence_penalty',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning_effort',
  'safety_identifier',
  'seed',
  'service_tier',
  'stop',
  'store',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'user',
  'verbosity',
  'web_search_options',
] as const

/** The endpoints of chat completions and of their models; beyond the interface document. */
export const chatEndpoints: readonly Endpoint[] = [
  ...['/v1', '/v1beta'].map((prefix) => ({
    method: 'GET' as const,
    path: `${prefix}/models`,
    operationId: prefix === '/v1' ? 'listModels' : 'listModelsBeta',
    summary: 'Lists the models of chat completions',
    area: 'Chat',
    answer: modelList,
  })),
  {
    method: 'POST',
    path: '/v1beta/chat/completions',
    operationId: 'createChatCompletion',
    summary: 'Answers the last message of a conversation. With `stream`, the stream ends with `[DONE]`',
    area: 'Chat',
    body: { name: 'ChatRequest', schema: chatRequest, ignored: IGNORED },
    answer: chatCompletion,
    events: chatStreamMessage,
    errors: {
      404: 'There is no such model',
      503: 'Too many questions wait for an answer, or schemas for a check',
    },
    quota: 'chat',
  },
]
