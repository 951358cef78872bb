import { ArgumentError } from '../protocol/argument-error.ts'
import { isObject } from '../protocol/json.ts'
import type { RunInput, TaskRunResult } from '../protocol/task.ts'
import type { FindAllResult } from '../protocol/find-all.ts'
import { extractRequest } from '../protocol/requests/extract.ts'
import { findAllRequest } from '../protocol/requests/find-all.ts'
import * as s from '../protocol/requests/kinds.ts'
import type { ObjectShape, Schema } from '../protocol/requests/schema.ts'
import { searchRequest } from '../protocol/requests/search.ts'
import { runInput, runResultQuery } from '../protocol/requests/tasks.ts'
import type { Research, ResearchStep } from './research.ts'
import { defineTool, type Tool, type ToolCall, type ToolResult } from './tool.ts'

/** Maximum length of the texts that are requested for one result, in characters. */
export const MAX_TEXT = 50_000
/** The least that a service gives of one page, in characters. */
const MIN_TEXT = 1_000
/** How long a call waits for a run, in s: less than the 60 s after which the usual clients give up. */
const MAX_WAIT = 45

const TIMEOUT = `How long to wait for the end, in seconds, at most ${MAX_WAIT}, which is the default. 0 returns at once.`

/** A schema whose requests may also say how long to wait. */
function waiting<T>(
  schema: Schema<T> & ObjectShape,
): Schema<T & { readonly timeout?: number }> & ObjectShape {
  const { required, optional } = schema
  return { kind: 'object', required, optional: { ...optional, ...runResultQuery.optional } }
}

interface StatusRequest {
  readonly run_id?: string
  readonly findall_id?: string
  readonly timeout?: number
}

const statusRequest = s.options<StatusRequest>(
  { run_id: s.id, findall_id: s.id, timeout: s.seconds },
  { names: ['run_id', 'findall_id'], expected: 'the id of a run' },
)

/** The tools of research. What creates runs is left out unless `actions` is true. */
export function researchTools(research: Research, actions: boolean): readonly Tool[] {
  const tools = [webSearch, webFetch, researchQuestion, findEntities, researchStatus]
  return tools.map((tool) => tool(research)).filter(({ isReadOnly }) => actions || isReadOnly)
}

function webSearch(research: Research): Tool {
  return defineTool({
    name: 'web_search',
    title: 'Search the web',
    description: 'Searches, and returns excerpts of the best pages with their URLs. Fast: seconds.',
    isReadOnly: true,
    schema: searchRequest,
    fields: {
      search_queries: 'One to five short queries of keywords, each from another angle.',
      objective: 'What is to be found out, in natural language: excerpts are chosen by it.',
      mode: 'How thorough the search is. Default advanced.',
      advanced_settings: 'max_results, and source_policy: the domains, and the date, of the pages to use.',
      max_chars_total: `Maximum length of all excerpts, in characters. Default and maximum ${MAX_TEXT}.`,
    },
    run: async ({ max_chars_total = MAX_TEXT, ...request }, { signal }) => ({
      value: await research.search(
        { ...request, max_chars_total: Math.min(max_chars_total, MAX_TEXT) },
        { signal },
      ),
    }),
  })
}

function webFetch(research: Research): Tool {
  return defineTool({
    name: 'web_fetch',
    title: 'Read pages',
    description:
      'Reads pages by their URLs: what matters for the objective or the queries, or their whole content without either.',
    isReadOnly: true,
    schema: extractRequest,
    fields: {
      urls: 'The URLs of 1 to 20 pages, such as those of search results.',
      objective: 'What is to be found out, in natural language.',
      search_queries: 'Keywords that excerpts are chosen by.',
      advanced_settings:
        'full_content (true for the whole content), and fetch_policy: how old a stored copy may be.',
      max_chars_total: `Maximum length of all excerpts, in characters. Default and maximum ${MAX_TEXT}.`,
    },
    run: async ({ max_chars_total = MAX_TEXT, advanced_settings, ...request }, { signal }) => {
      const { urls, objective, search_queries } = request
      const { full_content = objective === undefined && search_queries === undefined } =
        advanced_settings ?? {}
      const { max_chars_per_result = MAX_TEXT } = typeof full_content === 'object' ? full_content : {}
      const share = Math.max(MIN_TEXT, Math.floor(MAX_TEXT / urls.length))
      const bounded = full_content !== false && {
        max_chars_per_result: Math.min(max_chars_per_result, share),
      }
      return {
        value: await research.extract(
          {
            ...request,
            max_chars_total: Math.min(max_chars_total, MAX_TEXT),
            advanced_settings: { ...advanced_settings, full_content: bounded },
          },
          { signal },
        ),
      }
    },
  })
}

function researchQuestion(research: Research): Tool {
  return defineTool({
    name: 'research',
    title: 'Research a question',
    description:
      'Answers a question from the web, with citations and the confidence of each statement. Takes seconds to minutes: it waits for the ' +
      'end, and returns the id of a run that is still active, whose result research_status returns.',
    isReadOnly: false,
    schema: waiting(runInput),
    fields: {
      input: 'The question or task, in natural language, or its data as an object.',
      processor: 'The effort: lite, base (the default), core, or another that the service knows.',
      task_spec:
        'The form of the answer. For structured output: {"output_schema": {"type": "json", "json_schema": {…}}}.',
      source_policy: 'The domains, and the date, of the pages to use.',
      advanced_settings: 'location: the country to search from, as two letters.',
      previous_interaction_id: 'The interaction_id of an earlier run, whose context is continued.',
      timeout: TIMEOUT,
    },
    async run({ timeout, ...request }: RunInput & { readonly timeout?: number }, call) {
      const created = { processor: 'base', ...request, enable_events: true }
      const { run_id } = await research.tasks.create(created, { signal: call.signal })
      return await runState(research, run_id, timeout, call)
    },
  })
}

function findEntities(research: Research): Tool {
  return defineTool({
    name: 'find_all',
    title: 'Find all entities',
    description:
      'Finds the entities (companies, people, papers …) that meet all conditions, with what shows it. Takes minutes: it waits for the ' +
      'end, and returns the id of a run that is still active, whose matches research_status returns.',
    isReadOnly: false,
    schema: waiting(findAllRequest),
    fields: {
      objective: 'What to find, in natural language.',
      entity_type: 'The kind of entity, such as companies.',
      match_conditions: 'What each entity must meet. Each condition has a short name and a full sentence.',
      generator: 'The effort with which candidates are looked for, from preview to pro.',
      match_limit: 'The maximum number of matches.',
      exclude_list: 'Entities that are known already.',
      timeout: TIMEOUT,
    },
    async run({ timeout, ...request }, call) {
      const { findall_id } = await research.findAll.create(request, { signal: call.signal })
      return await findAllState(research, findall_id, timeout, call)
    },
  })
}

function researchStatus(research: Research): Tool {
  return defineTool({
    name: 'research_status',
    title: 'Status of a run',
    description: 'Returns the state of a run of research or find_all, with its result once it has ended.',
    isReadOnly: true,
    schema: statusRequest,
    fields: {
      run_id: 'The run_id that research has returned.',
      findall_id: 'The findall_id that find_all has returned.',
      timeout: TIMEOUT,
    },
    async run({ run_id, findall_id, timeout }, call) {
      if (run_id === undefined) return await findAllState(research, findall_id ?? '', timeout, call)
      if (findall_id === undefined) return await runState(research, run_id, timeout, call)
      throw new ArgumentError('findall_id', 'absent when run_id is given', findall_id)
    },
  })
}

/** The state of a run, with its output if it has completed. Waits for its end. */
async function runState(
  { tasks }: Research,
  runId: string,
  timeout: number | undefined,
  call: ToolCall,
): Promise<ToolResult> {
  const ended = await untilTimeout(timeout, call, async (signal) => {
    // The result comes without them, too.
    if (call.report !== undefined)
      reportSteps(tasks.events(runId, { signal }), call.report, signal).catch(() => undefined)
    return await tasks.result(runId, { signal })
  })
  if ('value' in ended) return { value: ended.value satisfies TaskRunResult }
  const { signal } = call
  const run = await tasks.get(runId, { signal })
  if (run.is_active && !ended.isTimeout) throw ended.error
  // The time may be over before the result of an ended run has come: always with a timeout of 0.
  if (run.status === 'completed') return { value: await tasks.result(runId, { signal }) }
  return { value: { run, output: null }, next: run.is_active ? nextStep('run_id', runId) : undefined }
}

/** The state of a FindAll run, with its candidates so far. Waits for its end. */
async function findAllState(
  { findAll }: Research,
  findAllId: string,
  timeout: number | undefined,
  call: ToolCall,
): Promise<ToolResult> {
  const ended = await untilTimeout(timeout, call, async (signal) => {
    await reportSteps(findAll.events(findAllId, { signal }), call.report, signal)
  })
  // Without its events, its state is still to be had.
  const result: FindAllResult = await findAll.result(findAllId, { signal: call.signal })
  const { is_active } = result.run.status
  if (is_active && 'error' in ended && !ended.isTimeout) throw ended.error
  return { value: result, next: is_active ? nextStep('findall_id', findAllId) : undefined }
}

function nextStep(name: string, id: string): string {
  return `The run is active. Call research_status with the ${name} ${JSON.stringify(id)} for its result.`
}

type Waited<T> = { readonly value: T } | { readonly error: unknown; readonly isTimeout: boolean }

/** Waits for the work, for `timeout` s at most. Throws only if the caller is gone. */
async function untilTimeout<T>(
  timeout = MAX_WAIT,
  { signal }: ToolCall,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<Waited<T>> {
  const late = AbortSignal.timeout(1_000 * Math.min(timeout, MAX_WAIT))
  // Nothing reports progress after the result.
  const done = new AbortController()
  try {
    return { value: await work(AbortSignal.any([signal, late, done.signal])) }
  } catch (error) {
    signal.throwIfAborted()
    return { error, isTimeout: late.aborted }
  } finally {
    done.abort()
  }
}

/** Reports the progress of a run until it has ended. Progress only grows, as the protocol asks. */
async function reportSteps(
  steps: AsyncIterable<ResearchStep>,
  report: ToolCall['report'],
  signal: AbortSignal,
): Promise<void> {
  let fraction = 0
  for await (const { type, data } of steps) {
    if (signal.aborted) return
    if (report === undefined || !isObject(data)) continue
    const { progress_meter, message, source_stats, status } = data
    if (typeof progress_meter === 'number') fraction = Math.max(fraction, progress_meter / 100)
    const text = typeof message === 'string' ? message : (sourcesText(source_stats) ?? stateText(status))
    report(fraction, text ?? type)
  }
}

/** `3 of 12 sources read`. */
function sourcesText(stats: unknown): string | undefined {
  if (!isObject(stats)) return undefined
  const { num_sources_considered: considered, num_sources_read: read } = stats
  return `${String(read ?? 0)} of ${String(considered ?? 0)} sources read`
}

/** `running: 12 candidates, 3 matches`. */
function stateText(status: unknown): string | undefined {
  if (!isObject(status) || !isObject(status['metrics'])) return undefined
  const { generated_candidates_count: candidates, matched_candidates_count: matches } = status['metrics']
  return `${String(status['status'])}: ${String(candidates)} candidates, ${String(matches)} matches`
}
