import type { ChatChunk } from '../../protocol/chat.ts'
import { piecesOf, type AnswerContent } from '../conversations/content.ts'
import type { AnswerEvents } from '../conversations/stream-answer.ts'

/** The fields of a completion that are known before the answer. */
export interface CompletionHead {
  readonly id: string
  /** Unix time in s. */
  readonly created: number
  readonly model: string
  readonly interaction_id: string
}

/** The events of a streamed chat completion: chunks, and `[DONE]` if it is complete. An error ends it without that. */
export function chunksOf({ interaction_id, ...head }: CompletionHead): AnswerEvents {
  const chunk = (
    delta: ChatChunk['choices'][number]['delta'],
    finish_reason: 'stop' | null = null,
    more: Pick<ChatChunk, 'basis' | 'interaction_id'> = {},
  ) => {
    const { id, created, model } = head
    const object = 'chat.completion.chunk'
    const choices = [{ index: 0, delta, finish_reason }]
    return frame({ id, object, created, model, choices, ...more } satisfies ChatChunk)
  }

  return {
    before: [chunk({ role: 'assistant', content: '' })],
    *answered({ text, basis }: AnswerContent) {
      for (const content of piecesOf(text)) yield chunk({ content })
      yield chunk({}, 'stop', { ...(head.model !== 'speed' && { basis }), interaction_id })
      yield 'data: [DONE]\n\n'
    },
    failed: (error) => [frame({ type: 'error', error })],
  }
}

function frame(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}
