import type { OpenEventWriter } from '../../http/node-event-writer.ts'
import { chatRoutes, modelRoutes } from '../chat/chat-routes.ts'
import type { Clock } from '../clock.ts'
import { responseRoutes } from '../responses/response-routes.ts'
import { Answerer, type AnswererOptions } from './answerer.ts'
import { OpenRequests } from './open-requests.ts'

/** Settings of {@link createConversations}. */
export interface ConversationsOptions extends AnswererOptions {
  readonly clock: Clock
  /** Opens the writer of a stream, by the path of its request. */
  readonly openWriter: (path: string) => OpenEventWriter
  /** Maximum duration of a stream, in ms of real time. */
  readonly streamDuration: number
  /** Called with internal errors within a stream, and the `ref_id` that the client got. */
  readonly onError: (error: unknown, ref_id: string) => void
}

/** Chat completions and responses. */
export interface Conversations {
  readonly chat: ReturnType<typeof chatRoutes>
  readonly models: ReturnType<typeof modelRoutes>
  readonly responses: ReturnType<typeof responseRoutes>
  /** Aborts the open requests. Their clients get an error. */
  close(): void
}

export function createConversations(options: ConversationsOptions): Conversations {
  const requests = new OpenRequests()
  const settings = { ...options, answerer: new Answerer(options), requests }
  return {
    chat: chatRoutes(settings),
    models: modelRoutes(),
    responses: responseRoutes(settings),
    close: () => requests.close(),
  }
}
