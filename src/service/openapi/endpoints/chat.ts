import { chatRequest } from '../../../protocol/requests/chat.ts'
import { chatCompletion, chatStreamMessage } from '../answers/chat.ts'
import type { Endpoint } from '../endpoint.ts'

/** The endpoint of chat completions; beyond the interface document. */
export const chatEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/v1beta/chat/completions',
    operationId: 'createChatCompletion',
    summary: 'Answers the last message of a conversation. With `stream`, the stream ends with `[DONE]`',
    area: 'Chat',
    body: { name: 'ChatRequest', schema: chatRequest },
    answer: chatCompletion,
    events: chatStreamMessage,
    errors: {
      404: 'There is no such model',
      503: 'Too many questions wait for an answer, or schemas for a check',
    },
    quota: 'chat',
  },
]
