import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import { responseRequest } from '../../protocol/requests/response.ts'
import type { ResponseObject, ResponseRequest } from '../../protocol/response.ts'
import type { Answerer, Question } from '../conversations/answerer.ts'
import type { AnswerForm } from '../conversations/content.ts'
import { type OpenRequests, unlessGone } from '../conversations/open-requests.ts'
import { readConversation } from '../conversations/question.ts'
import { streamAnswer, type StreamAnswerOptions } from '../conversations/stream-answer.ts'
import { problem } from '../http/problem.ts'
import { bodySchema } from '../http/request-schema.ts'
import { readJson, unprocessable } from '../http/validation.ts'
import { identifier } from '../identifier.ts'
import { completed, responseEvents } from './response-events.ts'

/** Settings of {@link responseRoutes}. */
export interface ResponseRoutesOptions extends StreamAnswerOptions {
  readonly answerer: Answerer
  readonly requests: OpenRequests
}

/** The processor of each effort of reasoning. */
const PROCESSORS = { low: 'lite', medium: 'base', high: 'core' } as const

const body = bodySchema(responseRequest)

/** The routes of responses (§1; reading a stored response is beyond the interface document). */
export function responseRoutes({ answerer, requests, ...streaming }: ResponseRoutesOptions) {
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/', async (c) => {
    const request = await readJson(c, body, unprocessable)
    const { model, input, previous_response_id: previous } = request
    const messages = typeof input === 'string' ? [{ role: 'user', content: input } as const] : input
    const conversation = readConversation(messages, ['body', 'input'])
    if ('issues' in conversation) throw unprocessable(conversation.issues)
    if (previous !== undefined && !answerer.isKnown(previous)) throw unknownResponse(previous)
    const id = identifier('resp')
    const head = {
      id,
      itemId: identifier('msg'),
      created_at: Math.floor(streaming.clock.now() / 1_000),
      model,
      previous_response_id: previous ?? null,
    }
    const { instructions } = conversation
    const question: Question = {
      ...conversation,
      instructions: [request.instructions ?? '', instructions].filter((text) => text !== '').join('\n\n'),
      id,
      interactionId: id,
      previous,
      processor: PROCESSORS[request.reasoning?.effort ?? 'medium'],
      form: formOf(request.text?.format),
      responseOf: (content) => completed(head, content),
    }
    const issues = await answerer.issuesOf(question, {
      question: ['body', 'input'],
      schema: ['body', 'text', 'format', 'schema'],
    })
    if (issues.length > 0) throw unprocessable(issues)
    answerer.refuseIfBusy()

    const { outgoing } = c.env
    const answer = answerer.answer(question, requests.open(outgoing))
    if (request.stream === true) {
      streamAnswer(c, answer, responseEvents(head), streaming)
      return RESPONSE_ALREADY_SENT
    }
    const content = await unlessGone(answer, outgoing)
    return content === undefined ? RESPONSE_ALREADY_SENT : c.json(completed(head, content))
  })

  routes.get('/:response_id', (c) => {
    const id = c.req.param('response_id')
    const stored = answerer.response(id)
    if (stored === undefined) throw problem(404, `There is no completed response ${id}`)
    const response: ResponseObject = JSON.parse(stored)
    return c.json(response)
  })

  return routes
}

/** The 404 of the common form for a response that does not exist, or was dropped since. */
function unknownResponse(id: string) {
  const message = `There is no response, interaction or run ${id} to continue`
  return problem(404, message, { param: 'previous_response_id', code: 'previous_response_not_found' })
}

function formOf(format: NonNullable<ResponseRequest['text']>['format']): AnswerForm {
  return format?.type === 'json_schema' ? { type: 'schema', schema: format.schema } : { type: 'text' }
}
