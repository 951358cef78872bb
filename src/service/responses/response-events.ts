import { sseFrame } from '../../http/server-sent-events.ts'
import type { ResponseEvent, ResponseObject, ResponseOutputMessage } from '../../protocol/response.ts'
import { piecesOf, type AnswerContent } from '../conversations/content.ts'
import type { AnswerEvents } from '../conversations/stream-answer.ts'
import { citationsOf } from './citations.ts'

/** The fields of a response that are known before the answer. */
export interface ResponseHead extends Pick<
  ResponseObject,
  'id' | 'created_at' | 'model' | 'previous_response_id'
> {
  /** The id of its message. */
  readonly itemId: string
}

/** An event without its number. */
type Unnumbered<Event> = Event extends unknown ? Omit<Event, 'sequence_number'> : never

/** The response with its answer. */
export function completed(head: ResponseHead, content: AnswerContent): ResponseObject {
  return responseOf(head, 'completed', [messageOf(head, content)])
}

/** The events of a streamed response, in their order (§1). */
export function responseEvents(head: ResponseHead): AnswerEvents {
  let count = 0
  const event = (given: Unnumbered<ResponseEvent>) => {
    const { type, ...fields } = given
    const data = JSON.stringify({ type, sequence_number: count++, ...fields })
    return sseFrame({ event: type, data })
  }
  const place = { item_id: head.itemId, output_index: 0, content_index: 0 }
  const started = responseOf(head, 'in_progress', [])

  return {
    before: [
      event({ type: 'response.created', response: started }),
      event({ type: 'response.in_progress', response: started }),
    ],
    *answered(content: AnswerContent) {
      const item = messageOf(head, content)
      const [part] = item.content
      if (part === undefined) throw new Error('the message has no text')
      const { text } = part
      const empty: ResponseOutputMessage = { ...item, status: 'in_progress', content: [] }
      yield event({ type: 'response.output_item.added', output_index: 0, item: empty })
      yield event({
        type: 'response.content_part.added',
        ...place,
        part: { type: 'output_text', text: '', annotations: [] },
      })
      for (const delta of piecesOf(text)) yield event({ type: 'response.output_text.delta', ...place, delta })
      yield event({ type: 'response.output_text.done', ...place, text })
      yield event({ type: 'response.content_part.done', ...place, part })
      yield event({ type: 'response.output_item.done', output_index: 0, item })
      yield event({ type: 'response.completed', response: responseOf(head, 'completed', [item]) })
    },
    *failed({ message, ref_id }) {
      const error = { code: 'server_error', message: `${message} (ref_id ${ref_id})` }
      yield event({ type: 'response.failed', response: { ...responseOf(head, 'failed', []), error } })
    },
  }
}

function responseOf(
  { id, created_at, model, previous_response_id }: ResponseHead,
  status: ResponseObject['status'],
  output: ResponseObject['output'],
): ResponseObject {
  return { id, object: 'response', created_at, status, model, output, error: null, previous_response_id }
}

function messageOf({ itemId }: ResponseHead, content: AnswerContent): ResponseOutputMessage {
  const part = { type: 'output_text', text: content.text, annotations: citationsOf(content) } as const
  return { type: 'message', id: itemId, role: 'assistant', status: 'completed', content: [part] }
}
