import { randomUUID } from 'node:crypto'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { OpenEventWriter } from '../../http/node-event-writer.ts'
import type { ServiceProblem } from '../../protocol/problem.ts'
import { type Clock, realTimeOf } from '../clock.ts'
import { streamEvents } from '../http/event-stream.ts'
import { HttpProblem } from '../http/problem.ts'
import { answerFeed } from './answer-feed.ts'
import type { AnswerContent } from './content.ts'

/** Settings of {@link streamAnswer}. */
export interface StreamAnswerOptions {
  readonly clock: Clock
  readonly openWriter: (path: string) => OpenEventWriter
  readonly streamDuration: number
  readonly onError: (error: unknown, ref_id: string) => void
}

/** The encoded events of a streamed answer. */
export interface AnswerEvents {
  /** Sent before the answer is there. */
  readonly before: Iterable<string>
  answered(content: AnswerContent): Iterable<string>
  failed(problem: ServiceProblem): Iterable<string>
}

/** Streams an answer. The headers and the first events are sent at once, and comments until the answer is there. */
export function streamAnswer(
  { env: { outgoing }, req: { path } }: Context<{ Bindings: HttpBindings }>,
  answer: Promise<AnswerContent>,
  events: AnswerEvents,
  { clock, openWriter, streamDuration, onError }: StreamAnswerOptions,
): void {
  const rest = answer.then(
    (content) => events.answered(content),
    (error: unknown) => events.failed(problemOf(error, onError)),
  )
  streamEvents(outgoing, answerFeed(events.before, rest), {
    clock: realTimeOf(clock),
    opening: ': the answer follows\n\n',
    openWriter: openWriter(path),
    duration: streamDuration,
    onError,
  })
}

function problemOf(error: unknown, onError: StreamAnswerOptions['onError']): ServiceProblem {
  if (error instanceof HttpProblem && 'error' in error.body) return error.body.error
  const ref_id = randomUUID()
  onError(error, ref_id)
  return { ref_id, message: 'The service failed. Its log has the error under this ref_id' }
}
