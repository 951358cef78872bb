import { isObject } from '../../../src/protocol/json.ts'
import { eventsOf } from './events.ts'
import { FIND_ALL_BETA, MEMORY_BETA, WEBHOOK_BETA } from '../../../src/protocol/betas.ts'

/** What the service has acknowledged. */
export interface Acknowledged {
  readonly runs: string[]
  /** The runs of each group, in the lists in which they were added. */
  readonly groups: Map<string, string[][]>
  readonly monitors: string[]
  readonly cancelledMonitors: Set<string>
  /** The content that each snapshot monitor compares with at first. */
  readonly snapshotMonitors: Map<string, unknown>
  readonly findAlls: string[]
  /** The memory scopes of runs, FindAll runs and snapshot monitors; '' for the personal memory. */
  readonly scopes: Map<string, string>
  /** Runs whose memory was evicted, and whether that was acknowledged. */
  readonly evicted: Map<string, boolean>
  /** Interactions of runs. */
  readonly runInteractions: string[]
  /** Interactions of chat completions that were received to their end. */
  readonly chats: string[]
  /** Responses that were received to their end. */
  readonly responses: string[]
  /** Extractions, which the service does not store. */
  readonly extractions: string[]
}

/** Nothing is acknowledged yet. */
export function nothingAcknowledged(): Acknowledged {
  return {
    runs: [],
    groups: new Map(),
    monitors: [],
    cancelledMonitors: new Set(),
    snapshotMonitors: new Map(),
    findAlls: [],
    scopes: new Map(),
    evicted: new Map(),
    runInteractions: [],
    chats: [],
    responses: [],
    extractions: [],
  }
}

/** Sends requests to one process of the service. Rejects with {@link Unreachable} once the process is dead. */
export class Api {
  readonly #url: string
  readonly #key: string

  constructor(url: string, key: string) {
    this.#url = url
    this.#key = key
  }

  async send(path: string, body?: unknown): Promise<Record<string, unknown>> {
    const text = await this.text(path, body)
    const json: unknown = JSON.parse(text)
    if (!isObject(json)) throw new Error(`${path} answered ${text}`)
    return json
  }

  async text(path: string, body?: unknown): Promise<string> {
    const headers = {
      'x-api-key': this.#key,
      'content-type': 'application/json',
      'service-beta': `${FIND_ALL_BETA}, ${MEMORY_BETA}, ${WEBHOOK_BETA}`,
    }
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const received = await fetch(this.#url + path, { headers, ...init })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch((cause: unknown) => {
        throw new Unreachable('the service does not respond', { cause })
      })
    if (received.status >= 300) throw new Error(`${path} answered ${received.status}: ${received.text}`)
    return received.text
  }
}

/** The service is dead. */
export class Unreachable extends Error {}

/** Where things are created, and what is drawn. */
interface Work {
  readonly api: Api
  readonly done: Acknowledged
  readonly webhookUrl: string
  /** A number from 0 to 1. */
  readonly random: () => number
}

/** Maximum number of monitors and of FindAll runs, so that their work does not outgrow the machine. */
const MAX_MONITORS = 6
const MAX_SNAPSHOT_MONITORS = 3
const MAX_FIND_ALLS = 6
const QUESTION = 'Which language is package-4 written in?'
const MODEL = 'speed'
const LICENSE_SPEC = {
  output_schema: {
    type: 'json',
    json_schema: { type: 'object', properties: { license: { type: 'string' } } },
  },
}

/** What a client creates, each noted once it is acknowledged. */
const KINDS: readonly ((work: Work) => Promise<void>)[] = [
  async ({ api, done, webhookUrl }) => {
    if (done.monitors.length >= MAX_MONITORS) return
    const { monitor_id } = await api.send('/v1/monitors', {
      type: 'event_stream',
      frequency: '1h',
      settings: { query: 'library written in TypeScript' },
      webhook: { url: webhookUrl, event_types: ['monitor.execution.completed'] },
    })
    done.monitors.push(String(monitor_id))
  },
  async (work) => {
    const { api, done, webhookUrl } = work
    if (done.findAlls.length >= MAX_FIND_ALLS) return
    const scope = scopeOf(work)
    const { findall_id } = await api.send('/v1beta/findall/runs', {
      objective: 'Find all libraries for TypeScript',
      entity_type: 'libraries',
      match_conditions: [{ name: 'typescript', description: 'The library is for TypeScript' }],
      generator: 'core',
      match_limit: 10,
      ...scope,
      webhook: { url: webhookUrl, event_types: ['findall.run.completed'] },
    })
    done.findAlls.push(String(findall_id))
    note(work, findall_id, scope)
  },
  async ({ api, done }) => {
    const { taskgroup_id } = await api.send('/v1/tasks/groups', {})
    done.groups.set(String(taskgroup_id), [])
  },
  async (work) => {
    const run = newRun(work)
    const { run_id, interaction_id } = await work.api.send('/v1/tasks/runs', run)
    work.done.runs.push(String(run_id))
    note(work, run_id, run)
    work.done.runInteractions.push(String(interaction_id))
  },
  async (work) => {
    const { api, done, webhookUrl } = work
    if (done.snapshotMonitors.size >= MAX_SNAPSHOT_MONITORS) return
    const run = { ...newRun(work), input: 'tidelib', processor: 'base', task_spec: LICENSE_SPEC }
    const { run_id } = await api.send('/v1/tasks/runs', run)
    done.runs.push(String(run_id))
    note(work, run_id, run)
    const { output } = await api.send(`/v1/tasks/runs/${String(run_id)}/result`)
    const { monitor_id } = await api.send('/v1/monitors', {
      type: 'snapshot',
      frequency: '1h',
      settings: { task_run_id: run_id },
      memory_scope_key: run.memory_scope_key,
      webhook: { url: webhookUrl, event_types: ['monitor.event.detected', 'monitor.execution.completed'] },
    })
    note(work, monitor_id, run)
    done.snapshotMonitors.set(String(monitor_id), isObject(output) ? output['content'] : undefined)
  },
  async ({ api, done, random }) => {
    const id = among([...done.snapshotMonitors.keys()], random)
    if (id !== undefined) await api.text(`/v1/monitors/${id}/trigger`, {})
  },
  async (work) => {
    const previous = sometimes(work, work.done.responses)
    const request = {
      model: MODEL,
      input: QUESTION,
      ...(previous !== undefined && { previous_response_id: previous }),
    }
    const { id } =
      work.random() < 0.5
        ? await work.api.send('/v1/responses', request)
        : streamedResponse(await work.api.text('/v1/responses', { ...request, stream: true }))
    work.done.responses.push(String(id))
  },
  async (work) => {
    const request = { model: MODEL, messages: [{ role: 'user', content: QUESTION }], ...previousOf(work) }
    const { interaction_id } =
      work.random() < 0.5
        ? await work.api.send('/v1beta/chat/completions', request)
        : streamedChat(await work.api.text('/v1beta/chat/completions', { ...request, stream: true }))
    work.done.chats.push(String(interaction_id))
  },
  async ({ api, done }) => {
    const { extract_id, results } = await api.send('/v1/extract', {
      urls: ['https://docs.example/package-4/README.md'],
      objective: QUESTION,
      advanced_settings: { full_content: true },
    })
    if (!JSON.stringify(results).includes('Library number 4')) throw new Error('an extraction has no content')
    done.extractions.push(String(extract_id))
  },
  async (work) => {
    const id = among([...work.done.groups.keys()], work.random)
    if (id === undefined) return
    const inputs = [newRun(work), newRun(work), newRun(work)]
    const { run_ids } = await work.api.send(`/v1/tasks/groups/${id}/runs`, { inputs })
    if (!Array.isArray(run_ids)) throw new Error('no run ids')
    work.done.groups.get(id)?.push(run_ids.map(String))
    for (const [index, runId] of run_ids.entries()) note(work, runId, inputs[index])
  },
  async ({ api, done, random }) => {
    // The first one stays, and its schedule is watched.
    const id = among(done.monitors.slice(1), random)
    if (id === undefined || done.cancelledMonitors.has(id) || random() < 0.5) return
    await api.send(`/v1/monitors/${id}/cancel`, {})
    done.cancelledMonitors.add(id)
  },
  async ({ api, done, random }) => {
    const id = among(done.runs, random)
    if (id === undefined || done.evicted.has(id)) return
    // A run that ends later would become a memory again.
    await api.send(`/v1/tasks/runs/${id}/result`)
    done.evicted.set(id, false)
    const memory_scope_key = done.scopes.get(id) || null
    await api.text('/v1beta/memory/evict', { kind: 'task', id, memory_scope_key })
    done.evicted.set(id, true)
  },
]

/** Creates one of each kind. */
export async function createEachKind(work: Work): Promise<void> {
  for (const create of KINDS) await create(work)
}

/** Creates one of a kind that is drawn. */
export async function createOne(work: Work): Promise<void> {
  await among(KINDS, work.random)?.(work)
}

function newRun(work: Work) {
  return {
    input: QUESTION,
    processor: 'lite',
    enable_events: true,
    webhook: { url: work.webhookUrl, event_types: ['task_run.status'] },
    ...scopeOf(work),
    ...previousOf(work),
  }
}

/** The scopes whose memories are compared; '' is the personal memory. */
export const SCOPES = ['', 'blue', 'red'] as const

/** One of the scopes. */
function scopeOf({ random }: Work): { readonly memory_scope_key: string | null } {
  return { memory_scope_key: among(SCOPES, random) || null }
}

function note(
  { done }: Work,
  id: unknown,
  { memory_scope_key = null }: { readonly memory_scope_key?: string | null } = {},
): void {
  done.scopes.set(String(id), memory_scope_key ?? '')
}

/** Continues an earlier answer, or none. */
function previousOf(work: Work): { readonly previous_interaction_id?: string } {
  const previous = sometimes(work, [...work.done.runInteractions, ...work.done.chats])
  return previous === undefined ? {} : { previous_interaction_id: previous }
}

/** One of the list in three of ten calls, undefined in the others. */
function sometimes({ random }: Work, list: readonly string[]): string | undefined {
  return random() < 0.3 ? among(list, random) : undefined
}

/** The last chunk of a streamed completion, which is acknowledged by the `[DONE]` after it. */
function streamedChat(stream: string): Readonly<Record<string, unknown>> {
  if (!stream.endsWith('data: [DONE]\n\n')) throw new Error(`a completion ended with ${stream.slice(-300)}`)
  return eventsOf(stream).at(-1)?.data ?? {}
}

/** The response that the last event of its stream has. */
function streamedResponse(stream: string): Readonly<Record<string, unknown>> {
  const { type, response } = eventsOf(stream).at(-1)?.data ?? {}
  if (type !== 'response.completed' || !isObject(response))
    throw new Error(`a response ended with ${stream.slice(-300)}`)
  return response
}

function among<T>(list: readonly T[], random: () => number): T | undefined {
  return list[Math.floor(random() * list.length)]
}
