import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import {
  CHAT_MODELS,
  type ChatCompletion,
  type ChatFormat,
  type ChatUsage,
  type ModelList,
} from '../../protocol/chat.ts'
import { chatRequest } from '../../protocol/requests/chat.ts'
import type { Answerer, Question } from '../conversations/answerer.ts'
import { type AnswerForm, piecesOf } from '../conversations/content.ts'
import { type OpenRequests, unlessGone } from '../conversations/open-requests.ts'
import { type Conversation, readConversation } from '../conversations/question.ts'
import { streamAnswer, type StreamAnswerOptions } from '../conversations/stream-answer.ts'
import { problem } from '../http/problem.ts'
import { bodySchema } from '../http/request-schema.ts'
import { issue, readJson, unprocessable } from '../http/validation.ts'
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
    const request = await readJson(c, body, unprocessable)
    const { model, messages, response_format, previous_interaction_id } = request
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
    })
    const previous = previous_interaction_id
    const unknown =
      previous === undefined || answerer.isKnown(previous)
        ? []
        : [issue(['body', 'previous_interaction_id'], `There is no interaction with the id ${previous}`)]
    if (issues.length + unknown.length > 0) throw unprocessable([...issues, ...unknown])
    answerer.refuseIfBusy()

    const { outgoing } = c.env
    const answer = answerer.answer(question, requests.open(outgoing))
    const created = Math.floor(streaming.clock.now() / 1_000)
    const head = { id: question.id, created, model, interaction_id: question.interactionId }
    const usageOf = (text: string) => usage(conversation, text)
    if (request.stream === true) {
      const hasUsage = request.stream_options?.include_usage === true
      const chunks = chunksOf(head, hasUsage ? usageOf : undefined)
      streamAnswer(c, answer, chunks, streaming)
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
      usage: usageOf(text),
    }
    return c.json(completion)
  })

  return routes
}

/** The models of chat completions, in the common form. */
const MODELS: ModelList = {
  object: 'list',
  data: CHAT_MODELS.map((id) => ({ id, object: 'model', created: 0, owned_by: 'rivulet' })),
}

/** The route of the list of models; beyond the interface document. */
export function modelRoutes() {
  return new Hono().get('/', (c) => c.json(MODELS))
}

/** The built-in processor has no tokens: the pieces of a streamed answer are counted instead, which are words with their white space. */
function usage({ question, instructions, turns }: Conversation, answer: string): ChatUsage {
  const asked = [instructions, ...turns.flatMap((turn) => [turn.question, turn.answer]), question]
  const prompt_tokens = asked.reduce((sum, text) => sum + piecesIn(text), 0)
  const completion_tokens = piecesIn(answer)
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
}

function piecesIn(text: string): number {
  let count = 0
  for (const _ of piecesOf(text)) count += 1
  return count
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
