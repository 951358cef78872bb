import type { ChatChunk, ChatCompletion, ChatUsage, FinishReason, ModelList } from '../../../protocol/chat.ts'
import * as s from './kinds.ts'
import { fieldBasis } from './outputs.ts'
import { errorResponse } from './problems.ts'

type CompletionChoice = ChatCompletion['choices'][number]
type ChunkChoice = ChatChunk['choices'][number]

const finishReason = s.orNull(s.openOneOf<FinishReason>(['stop', 'length']))
const ofInteraction = {
  basis: s.orNull(s.list(fieldBasis)),
  interaction_id: s.orNull(s.id),
  usage: s.orNull(
    s.object<ChatUsage>({ prompt_tokens: s.count, completion_tokens: s.count, total_tokens: s.count }, {}),
  ),
}

/** A chat completion; beyond the interface document. */
export const chatCompletion = s.component(
  'ChatCompletion',
  s.object<ChatCompletion>(
    {
      id: s.id,
      object: s.oneOf(['chat.completion']),
      created: s.count,
      model: s.text,
      choices: s.list(
        s.object<CompletionChoice>(
          {
            index: s.count,
            message: s.object<CompletionChoice['message']>(
              { role: s.oneOf(['assistant']), content: s.orNull(s.text) },
              {},
            ),
            finish_reason: finishReason,
          },
          {},
        ),
      ),
    },
    ofInteraction,
  ),
)

const chunk = s.component(
  'ChatChunk',
  s.object<ChatChunk>(
    {
      id: s.id,
      object: s.oneOf(['chat.completion.chunk']),
      created: s.count,
      model: s.text,
      choices: s.list(
        s.object<ChunkChoice>(
          {
            index: s.count,
            delta: s.object<ChunkChoice['delta']>(
              {},
              { role: s.orNull(s.oneOf(['assistant'])), content: s.orNull(s.text) },
            ),
          },
          { finish_reason: finishReason },
        ),
      ),
    },
    ofInteraction,
  ),
)

/** The messages in the stream of a chat completion before `[DONE]`: chunks, or an error in place of the rest. */
export const chatStreamMessage = s.component('ChatStreamMessage', { anyOf: [chunk, errorResponse] })

/** The models of chat completions; beyond the interface document. */
export const modelList = s.component(
  'ModelList',
  s.object<ModelList>(
    {
      object: s.oneOf(['list']),
      data: s.list(
        s.object<ModelList['data'][number]>(
          { id: s.id, object: s.oneOf(['model']), created: s.count, owned_by: s.text },
          {},
        ),
      ),
    },
    {},
  ),
)
