import { REASONING_EFFORTS } from '../response.ts'
import type { ResponseMessage, ResponseRequest, ResponseTextPart } from '../response.ts'
import * as s from './kinds.ts'

const parts = s.list<ResponseTextPart>(
  s.object({ type: s.oneOf(['input_text', 'output_text']), text: s.anyText() }, {}),
  'entries',
  1,
)

const message = s.object<ResponseMessage>(
  {
    role: s.oneOf(['system', 'developer', 'user', 'assistant']),
    content: s.either(s.anyText(), parts),
  },
  {},
)

/** The body of `POST /v1/responses` (§1). */
export const responseRequest = s.object<ResponseRequest>(
  { model: s.text('name'), input: s.either(s.text(), s.list(message, 'messages', 1)) },
  {
    instructions: s.anyText(),
    reasoning: s.options({ effort: s.oneOf(REASONING_EFFORTS) }),
    previous_response_id: s.anyText('name'),
    text: s.options({
      format: s.variants({
        text: s.options({}),
        json_schema: s.object({ schema: s.json('schema') }, { name: s.anyText('name') }),
      }),
    }),
    stream: s.flag,
  },
)
