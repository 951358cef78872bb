import { isObject } from '../../protocol/json.ts'
import { MAX_LIVE_TEXT, MAX_LIVE_VIEWS, parseAddress, viewAddress } from '../../protocol/live.ts'
import type { ViewRequest } from '../../protocol/live.ts'
import type { BodyIntake } from '../../http/body-intake.ts'
import { jsonBody } from '../access/request-body.ts'
import { refusalResponse } from '../http-answer.ts'
import { positionsOf } from './event-id.ts'

/** Maximum number of views of a connection of `EventSource`, whose positions must fit into a header. */
const MAX_EVENT_SOURCE_VIEWS = 16

/** The views that a request asks for, or the response that refuses it. */
export async function viewRequests(
  request: Request,
  intake: BodyIntake,
): Promise<readonly ViewRequest[] | Response> {
  const requests = request.method === 'GET' ? ofQuery(request) : await jsonBody(request, intake).then(ofBody)
  if (requests instanceof Response) return requests
  const addresses = requests.map(({ view, params }) => viewAddress(view, params))
  if (new Set(addresses).size < addresses.length) return invalid('a view is asked for twice')
  return requests
}

function ofBody(body: Readonly<Record<string, unknown>> | Response): readonly ViewRequest[] | Response {
  if (body instanceof Response) return body
  const { views } = body
  if (!Array.isArray(views)) return invalid('the body must have a list `views`')
  const problem = countProblem(views.length, MAX_LIVE_VIEWS)
  if (problem !== undefined) return problem
  const requests = views.flatMap((each: unknown) => viewRequest(each) ?? [])
  if (requests.length < views.length) {
    return invalid('each of `views` must have `view`, and may have `params` and `after`, all of them texts')
  }
  return requests
}

function ofQuery({ url, headers }: Request): readonly ViewRequest[] | Response {
  const views = new URL(url).searchParams.getAll('view')
  const problem = countProblem(views.length, MAX_EVENT_SOURCE_VIEWS)
  if (problem !== undefined) return problem
  const positions = positionsOf(headers.get('last-event-id') ?? '', views.length)
  const requests = views.flatMap((address, index) => {
    const after = positions[index]
    return viewRequest({ ...parseAddress(address), ...(after !== undefined && { after }) }) ?? []
  })
  return requests.length < views.length ? invalid('each `view` must be the address of a view') : requests
}

function countProblem(count: number, max: number): Response | undefined {
  return count >= 1 && count <= max ? undefined : invalid(`it must ask for 1 to ${max} views`)
}

function viewRequest(given: unknown): ViewRequest | undefined {
  if (!isObject(given)) return undefined
  const { view, params = {}, after } = given
  if (!isText(view) || view === '' || !isObject(params) || (after !== undefined && !isText(after)))
    return undefined
  const texts: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(params)) {
    if (!isText(name) || !isText(value)) return undefined
    texts[name] = value
  }
  return { view, params: texts, ...(after !== undefined && { after }) }
}

/** Texts that are not well-formed have no address. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_LIVE_TEXT && value.isWellFormed()
}

function invalid(message: string): Response {
  return refusalResponse('invalid', message)
}
