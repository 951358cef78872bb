import type { ServerResponse } from 'node:http'
import { createClient } from 'rivulet'
import type { ClientOptions, Diagnostic } from 'rivulet'
import { answer, openStream, serve, sse } from '../../support/serve.ts'

/** A request that the service received. */
interface ReceivedRequest {
  /** `GET /v1/tasks/runs/r/events`, with the query. */
  readonly line: string
  readonly body: unknown
  readonly beta: string | undefined
}

/** What the service answers: to the nth request of a kind, counted from 1. The default is a run that has completed. */
export interface RunScript {
  readonly create?: (response: ServerResponse, nth: number) => void
  readonly get?: (response: ServerResponse, nth: number) => void
  readonly result?: (response: ServerResponse, nth: number) => void
  /** The response's stream is open. */
  readonly events?: (response: ServerResponse, nth: number) => void
  /** The response of the stream, before it is open. */
  readonly stream?: (response: ServerResponse, nth: number) => void
}

export const text = (content: string) => ({ type: 'text', content, basis: [] })

export const runAs = (status: string, more: object = {}) => ({
  run_id: 'r',
  status,
  is_active: status === 'queued' || status === 'running',
  processor: 'base',
  created_at: null,
  modified_at: null,
  ...more,
})

/** Messages of the stream. */
export const state = (status: string, more: object = {}) =>
  sse({ type: 'task_run.state', run: runAs(status), ...more } as never)
export const done = state('completed', { output: text('42') })
export const message = (words: string, kind = 'plan') =>
  sse({ type: `task_run.progress_msg.${kind}`, message: words, timestamp: null } as never)
export const stats = (progress_meter: number) =>
  sse({ type: 'task_run.progress_stats', source_stats: {}, progress_meter } as never)

/** A client of a service with one run, `r`. */
export async function runService(script: RunScript = {}, options: ClientOptions = {}) {
  const requests: ReceivedRequest[] = []
  const counts = new Map<string, number>()
  const baseUrl = await serve((request, response) => {
    let sent = ''
    request.setEncoding('utf8').on('data', (part: string) => (sent += part))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const body: unknown = sent === '' ? undefined : JSON.parse(sent)
      requests.push({ line: `${method} ${url}`, body, beta: headers['service-beta']?.toString() })
      const [path = ''] = url.split('?')
      const last = path.split('/').at(-1) ?? ''
      const kind = method === 'POST' ? 'create' : last
      const nth = (counts.get(kind) ?? 0) + 1
      counts.set(kind, nth)
      if (kind === 'create') {
        return (script.create ?? ((r) => answer(r, runAs('queued'), 202)))(response, nth)
      }
      if (kind === 'input') return answer(response, { input: 'What is it?', processor: 'base' })
      if (kind === 'result') {
        const result = { run: runAs('completed'), output: text('42') }
        return (script.result ?? ((r) => answer(r, result)))(response, nth)
      }
      if (kind !== 'events') {
        return (script.get ?? ((r) => answer(r, runAs('completed'))))(response, nth)
      }
      if (script.stream !== undefined) return script.stream(response, nth)
      openStream(response)
      return (script.events ?? ((r) => r.end(state('queued') + done)))(response, nth)
    })
  })
  const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, ...options })
  const diagnostics: Diagnostic[] = []
  client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))
  const lines = () => requests.map(({ line }) => line)
  return { client, requests, lines, diagnostics, baseUrl }
}

/** What events say, in short. */
export function brief(events: readonly { readonly type: string; readonly data: unknown }[]): string[] {
  return events.map(({ type, data }) => {
    const { run, message: words, progress_meter } = Object(data)
    return run?.status ?? words ?? progress_meter?.toString() ?? type
  })
}
