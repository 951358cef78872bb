import type { ChatFormat, ChatMessage, ChatRequest, ChatTextPart } from '../chat.ts'
import * as s from './kinds.ts'

const parts = s.list<ChatTextPart>(s.object({ type: s.oneOf(['text']), text: s.anyText() }, {}), 'entries', 1)

const message = s.object<ChatMessage>(
  { role: s.oneOf(['system', 'developer', 'user', 'assistant']), content: s.either(s.anyText(), parts) },
  {},
)

/** The body of `POST /v1beta/chat/completions`; beyond the interface document. */
export const chatRequest = s.object<ChatRequest>(
  { model: s.text('name'), messages: s.list(message, 'messages', 1) },
  {
    response_format: s.variants<ChatFormat>({
      text: s.options({}),
      json_object: s.options({}),
      json_schema: s.object(
        { json_schema: s.object({ schema: s.json('schema') }, { name: s.anyText('name') }) },
        {},
      ),
    }),
    previous_interaction_id: s.anyText('name'),
    stream: s.flag,
    stream_options: s.options({ include_usage: s.flag }),
  },
)
