import { sseFrame } from '../../http/server-sent-events.ts'
import type { ChatChunk, ChatUsage } from '../../protocol/chat.ts'
import { piecesOf, type AnswerContent } from '../conversations/content.ts'
import type { AnswerEvents } from '../conversations/stream-answer.ts'

/** The fields of a completion that are known before the answer. */
export interface CompletionHead {
  readonly id: string
  /** Time of creation, Unix s. */
  readonly created: number
  readonly model: string
  readonly interaction_id: string
}

/**
 * The events of a streamed chat completion: chunks, and `[DONE]` if it is complete. An error ends it without that. With `usageOf` the
 * last chunk has the usage of the answer, and those before it have null.
 */
export function chunksOf(
  { interaction_id, ...head }: CompletionHead,
  usageOf?: (answer: string) => ChatUsage,
): AnswerEvents {
  const frameOf = (fields: Pick<ChatChunk, 'choices'> & Partial<ChatChunk>) => {
    const { id, created, model } = head
    const object = 'chat.completion.chunk'
    const event = {
      id,
      object,
      created,
      model,
      ...(usageOf !== undefined && { usage: null }),
      ...fields,
    } satisfies ChatChunk
    return sseFrame({ data: JSON.stringify(event) })
  }
  const chunk = (
    delta: ChatChunk['choices'][number]['delta'],
    finish_reason: 'stop' | null = null,
    more: Pick<ChatChunk, 'basis' | 'interaction_id'> = {},
  ) => frameOf({ choices: [{ index: 0, delta, finish_reason }], ...more })

  return {
    before: [chunk({ role: 'assistant', content: '' })],
    *answered({ text, basis }: AnswerContent) {
      for (const content of piecesOf(text)) yield chunk({ content })
      yield chunk({}, 'stop', { ...(head.model !== 'speed' && { basis }), interaction_id })
      if (usageOf !== undefined) yield frameOf({ choices: [], usage: usageOf(text) })
      yield sseFrame({ data: '[DONE]' })
    },
    failed: (error) => [sseFrame({ data: JSON.stringify({ type: 'error', error }) })],
  }
}
