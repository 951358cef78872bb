import type {
  ResponseEvent,
  ResponseObject,
  ResponseOutputMessage,
  ResponseText,
  UrlCitation,
} from '../../../protocol/response.ts'
import * as s from './kinds.ts'

const citation = s.component(
  'UrlCitation',
  s.object<UrlCitation>(
    { type: s.oneOf(['url_citation']), url: s.url, start_index: s.count, end_index: s.count },
    { title: s.orNull(s.text) },
  ),
)

const text = s.component(
  'ResponseText',
  s.object<ResponseText>({ type: s.oneOf(['output_text']), text: s.text, annotations: s.list(citation) }, {}),
)

const message = s.component(
  'ResponseOutputMessage',
  s.object<ResponseOutputMessage>(
    {
      type: s.oneOf(['message']),
      id: s.id,
      role: s.oneOf(['assistant']),
      status: s.oneOf(['in_progress', 'completed', 'incomplete']),
      content: s.list(text),
    },
    {},
  ),
)

/** A response (§1). */
export const responseObject = s.component(
  'Response',
  s.object<ResponseObject>(
    {
      id: s.id,
      object: s.oneOf(['response']),
      created_at: s.count,
      status: s.openOneOf<ResponseObject['status']>(['in_progress', 'completed', 'failed']),
      model: s.text,
      output: s.list(message),
    },
    {
      error: s.orNull(
        s.object<NonNullable<ResponseObject['error']>>({ message: s.text }, { code: s.orNull(s.text) }),
      ),
      previous_response_id: s.orNull(s.id),
    },
  ),
)

/** The member of the union that has the type, beside others. */
type EventOf<Type, Event extends ResponseEvent = ResponseEvent> = Event extends unknown
  ? Type extends Event['type']
    ? Event
    : never
  : never

const place = { item_id: s.id, output_index: s.count, content_index: s.count }

const stateEvent = s.component(
  'ResponseStateEvent',
  s.object<EventOf<'response.created'>>(
    {
      type: s.oneOf(['response.created', 'response.in_progress', 'response.completed', 'response.failed']),
      sequence_number: s.count,
      response: responseObject,
    },
    {},
  ),
)

const itemEvent = s.component(
  'ResponseItemEvent',
  s.object<EventOf<'response.output_item.added'>>(
    {
      type: s.oneOf(['response.output_item.added', 'response.output_item.done']),
      sequence_number: s.count,
      output_index: s.count,
      item: message,
    },
    {},
  ),
)

const partEvent = s.component(
  'ResponsePartEvent',
  s.object<EventOf<'response.content_part.added'>>(
    {
      type: s.oneOf(['response.content_part.added', 'response.content_part.done']),
      sequence_number: s.count,
      ...place,
      part: text,
    },
    {},
  ),
)

/** A message in the stream of a response (§1). */
export const responseStreamEvent = s.component(
  'ResponseStreamEvent',
  s.variants<ResponseEvent, 'type'>({
    'response.created': stateEvent,
    'response.in_progress': stateEvent,
    'response.completed': stateEvent,
    'response.failed': stateEvent,
    'response.output_item.added': itemEvent,
    'response.output_item.done': itemEvent,
    'response.content_part.added': partEvent,
    'response.content_part.done': partEvent,
    'response.output_text.delta': s.component(
      'ResponseTextDeltaEvent',
      s.object<EventOf<'response.output_text.delta'>>(
        {
          type: s.oneOf(['response.output_text.delta']),
          sequence_number: s.count,
          ...place,
          delta: s.text,
        },
        {},
      ),
    ),
    'response.output_text.done': s.component(
      'ResponseTextDoneEvent',
      s.object<EventOf<'response.output_text.done'>>(
        {
          type: s.oneOf(['response.output_text.done']),
          sequence_number: s.count,
          ...place,
          text: s.text,
        },
        {},
      ),
    ),
  }),
)
