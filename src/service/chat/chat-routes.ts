import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import { CHAT_MODELS, type ChatCompletion, type ChatFormat } from '../../protocol/chat.ts'
import { chatRequest } from '../../protocol/requests/chat.ts'
import type { Answerer, Question } from '../conversations/answerer.ts'
import type { AnswerForm } from '../conversations/content.ts'
import { type OpenRequests, unlessGone } from '../conversations/open-requests.ts'
import { readConversation } from '../conversations/question.ts'
import { streamAnswer, type StreamAnswerOptions } from '../conversations/stream-answer.ts'
import { problem } from '../http/problem.ts'
import { bodySchema } from '../http/request-schema.ts'
import { readJson, unprocessable } from '../http/validation.ts'
import { identifier } from '../identifier.ts'
import { chunksOf } from './chunks.ts'

/** Settings of {@link chatRoutes}. */
export interface ChatRoutesOptions extends StreamAnswerOptions {
  readonly answerer: Answerer
  readonly requests: OpenRequests
}

const body = bodySchema(chatRequest)

/** The route of chat completions; beyond the interface document. */
export function chatRoutes({ answerer, requests, ...streaming }: ChatRoutesOptions) {
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/', async (c) => {
    const { model, messages, response_format, previous_interaction_id, stream } = await readJson(
      c,
      body,
      unprocessable,
    )
    if (!CHAT_MODELS.some((known) => known === model)) throw unknownModel(model)
    const conversation = readConversation(messages, ['body', 'messages'])
    if ('issues' in conversation) throw unprocessable(conversation.issues)
    const question: Question = {
      ...conversation,
      id: identifier('chatcmpl'),
      interactionId: identifier('intr'),
      previous: previous_interaction_id,
      processor: model === 'speed' ? 'lite' : model,
      form: formOf(response_format),
    }
    const issues = await answerer.issuesOf(question, {
      question: ['body', 'messages'],
      schema: ['body', 'response_format', 'json_schema', 'schema'],
      previous: ['body', 'previous_interaction_id'],
    })
    if (issues.length > 0) throw unprocessable(issues)
    answerer.refuseIfBusy()

    const { outgoing } = c.env
    const answer = answerer.answer(question, requests.open(outgoing))
    const created = Math.floor(streaming.clock.now() / 1_000)
    const head = { id: question.id, created, model, interaction_id: question.interactionId }
    if (stream === true) {
      streamAnswer(outgoing, c.req.path, answer, chunksOf(head), streaming)
      return RESPONSE_ALREADY_SENT
    }
    const content = await unlessGone(answer, outgoing)
    if (content === undefined) return RESPONSE_ALREADY_SENT
    const { text, basis } = content
    const completion: ChatCompletion = {
      id: question.id,
      object: 'chat.completion',
      created,
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      ...(model !== 'speed' && { basis }),
      interaction_id: question.interactionId,
    }
    return c.json(completion)
  })

  return routes
}

/** The 404 of the common form for a model that does not exist. */
function unknownModel(model: string) {
  const message = `There is no model ${model}: use ${CHAT_MODELS.join(', ')}`
  return problem(404, message, { param: 'model', code: 'model_not_found' })
}

function formOf(format: ChatFormat | undefined): AnswerForm {
  if (format?.type === 'json_schema') return { type: 'schema', schema: format.json_schema.schema }
  return { type: format?.type === 'json_object' ? 'object' : 'text' }
}
