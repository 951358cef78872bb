import { setTimeout } from 'node:timers/promises'
import { isObject } from '../../../src/protocol/json.ts'
import type { Deliveries } from './deliveries.ts'
import { eventsOf, type StreamEvent } from './events.ts'
import { type Acknowledged, type Api, SCOPES } from './workload.ts'

/** What the service has of what it acknowledged. */
export interface Findings {
  /** How much was acknowledged, by kind. */
  readonly acknowledged: Readonly<Record<string, number>>
  /** Number of executions of monitors. */
  readonly executions: number
  /** Number of webhooks, and of those that arrived more than once. */
  readonly webhooks: number
  /** What is lost, doubled or has not ended; empty if all is well. */
  readonly problems: readonly string[]
}

/** A question that has no answer without the turn before it. */
const FOLLOW_UP = 'Which language is it written in?'
const HOUR = 3_600_000
/** How long to wait for what is owed, in ms of real time. */
const PATIENCE = 60_000

/** The service, and what it must have. */
interface Verification {
  readonly api: Api
  readonly done: Acknowledged
  readonly deliveries: Deliveries
  /** What the document says that snapshot monitors watch. */
  readonly license: string
}

/** Compares what the service has with what it acknowledged, once everything has ended. */
export async function verify({ api, done, deliveries, license }: Verification): Promise<Findings> {
  const problems: string[] = []
  /** The webhooks that are owed: their type and what they are about. */
  const owed: string[] = []
  const attempt = async (what: string, check: () => Promise<void>): Promise<void> => {
    try {
      await check()
    } catch (error) {
      problems.push(`${what}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  const inGroups = [...done.groups.values()].flat(2)
  for (const id of [...done.runs, ...inGroups]) {
    await attempt(id, async () => {
      await api.send(`/v1/tasks/runs/${id}/result`)
      checkTrace(eventsOf(await api.text(`/v1beta/tasks/runs/${id}/events`)))
    })
    owed.push(`task_run.status ${id}`)
  }
  for (const [id, added] of done.groups) {
    await attempt(id, async () => {
      const { status } = await api.send(`/v1/tasks/groups/${id}`)
      checkGroup(status, eventsOf(await api.text(`/v1/tasks/groups/${id}/events`)), added.flat())
    })
  }
  for (const id of done.findAlls) {
    await attempt(id, async () => {
      checkFindAll(id, eventsOf(await api.text(`/v1beta/findall/runs/${id}/events`)))
      const { run } = await api.send(`/v1beta/findall/runs/${id}/result`)
      const status = isObject(run) && isObject(run['status']) ? run['status']['status'] : undefined
      expectEqual('the status', status, 'completed')
    })
    owed.push(`findall.run.completed ${id}`)
  }
  for (const id of done.responses) {
    const follow = { model: 'speed', input: FOLLOW_UP, previous_response_id: id }
    await attempt(id, async () => checkContinued(await api.send('/v1/responses', follow)))
  }
  const messages = [{ role: 'user', content: FOLLOW_UP }]
  for (const id of [...done.runInteractions, ...done.chats]) {
    const follow = { model: 'speed', messages, previous_interaction_id: id }
    await attempt(id, async () => checkContinued(await api.send('/v1beta/chat/completions', follow)))
  }
  let executions = 0
  for (const id of done.monitors) {
    await attempt(id, async () => {
      const isCancelled = done.cancelledMonitors.has(id)
      const before = await api.send(`/v1/monitors/${id}`)
      expectEqual('the status', before['status'], isCancelled ? 'cancelled' : 'active')
      if (!isCancelled)
        await waitFor('another execution', async () => {
          const { last_run_at } = await api.send(`/v1/monitors/${id}`)
          return last_run_at !== before['last_run_at']
        })
      // The documents that it searches do not change, so that each execution is a completion.
      const times = (await eventsOfMonitor(api, id)).map(({ timestamp }) => String(timestamp))
      executions += times.length
      checkSchedule(Date.parse(String(before['created_at'])), times)
      owed.push(...times.map((time) => `monitor.execution.completed ${id} ${time}`))
    })
  }
  for (const [id, baseline] of done.snapshotMonitors) {
    await attempt(id, async () => {
      await waitFor('the latest snapshot', async () => {
        const { output } = await api.send(`/v1/monitors/${id}`)
        return JSON.stringify(output).includes(`"license":"${license}"`)
      })
      const events = await eventsOfMonitor(api, id)
      executions += events.length
      expectEqual('the license after all changes', licenseAfter(baseline, events), license)
      owed.push(
        ...events.map(({ event_type: type, timestamp, event_group_id: group }) =>
          type === 'snapshot'
            ? `monitor.event.detected ${id} ${String(group)}`
            : `monitor.execution.completed ${id} ${String(timestamp)}`,
        ),
      )
    })
  }
  const detecting = await monitorsWithDetections(api, [...done.snapshotMonitors.keys()])
  const remembered = [...done.runs, ...inGroups, ...done.findAlls, ...detecting]
  for (const scope of SCOPES) {
    await attempt(`the memory ${scope}`, async () => {
      const { results } = await api.send('/v1beta/memory/retrieve', {
        limit: 1_000,
        memory_scope_key: scope || null,
      })
      const ids = Array.isArray(results) ? results.map((result: unknown) => String(Object(result).id)) : []
      const wrong = ids.filter((id) => (done.scopes.get(id) ?? scope) !== scope)
      expectEqual('what is of another scope', wrong.join(), '')
      expectEqual('what was evicted', ids.filter((id) => done.evicted.get(id) === true).join(), '')
      const owned = remembered.filter((id) => done.scopes.get(id) === scope && !done.evicted.has(id))
      expectEqual('what is lost', without(owned, ids).join(), '')
    })
  }
  const arrived = () => [...deliveries.values()].map(({ body }) => subjectOf(body))
  await attempt('webhooks', () =>
    waitFor(
      () => `not delivered: ${without(owed, arrived()).slice(0, 3).join(', ')}`,
      async () => without(owed, arrived()).length === 0,
    ),
  )
  for (const [subject, { length }] of Map.groupBy(arrived(), (about) => about)) {
    if (length > 1) problems.push(`${subject} has ${length} webhook ids`)
  }
  for (const [id, { bodies }] of deliveries) {
    if (bodies.size > 1) problems.push(`the webhook ${id} was sent with ${bodies.size} bodies`)
  }
  return {
    acknowledged: {
      runs: done.runs.length,
      runs_in_groups: inGroups.length,
      groups: done.groups.size,
      monitors: done.monitors.length,
      snapshot_monitors: done.snapshotMonitors.size,
      find_alls: done.findAlls.length,
      chats: done.chats.length,
      responses: done.responses.length,
      extractions: done.extractions.length,
      memories: remembered.length,
      evicted: done.evicted.size,
    },
    executions,
    webhooks: deliveries.size,
    problems,
  }
}

function checkTrace(events: readonly StreamEvent[]): void {
  const starts = events.filter(({ data }) => data['message'] === 'The run has started')
  expectEqual('the number of starts in the trace', starts.length, 1)
  const { run } = events.at(-1)?.data ?? {}
  expectEqual('the last state', isObject(run) ? run['status'] : undefined, 'completed')
}

/** A request that was not acknowledged may have added three runs more. */
function checkGroup(status: unknown, events: readonly StreamEvent[], added: readonly string[]): void {
  if (!isObject(status)) throw new Error('no status')
  expectEqual('the activity of an ended group', status['is_active'], false)
  const count = Number(status['num_task_runs'])
  expectEqual('the rest of a list of three runs', count % 3, 0)
  const ended = events.flatMap(({ data: { type, run } }) =>
    type === 'task_run.state' && isObject(run) ? [String(run['run_id'])] : [],
  )
  expectEqual('the number of runs that have ended', new Set(ended).size, count)
  expectEqual('the number of their events', ended.length, count)
  expectEqual('the acknowledged runs without an event', without(added, ended).join(), '')
}

function checkFindAll(id: string, events: readonly StreamEvent[]): void {
  expectEqual(
    'the ids of events',
    events.map((event) => event.id).join(),
    events.map((_, index) => `${id}:${index + 1}`).join(),
  )
  const changes = events.flatMap(({ data: { type, data } }) =>
    String(type).startsWith('findall.candidate.') && isObject(data)
      ? [`${String(type)} ${String(data['candidate_id'])}`]
      : [],
  )
  expectEqual('the number of different changes', new Set(changes).size, changes.length)
}

/** Each hour since the creation has at most one execution. Hours that passed while the service was down have none. */
function checkSchedule(createdAt: number, times: readonly string[]): void {
  const hours = times.map((time) => Math.floor((Date.parse(time) - createdAt) / HOUR))
  expectEqual('the number of hours with executions', new Set(hours).size, hours.length)
}

/** The answer to a question about the package of the turn before. */
function checkContinued(answer: Readonly<Record<string, unknown>>): void {
  const text = JSON.stringify(answer['choices'] ?? answer['output'])
  // The name of the package comes only from the turn before.
  if (!text.includes('TypeScript')) throw new Error(`the follow-up was answered without its context: ${text}`)
}

/** The license after the changes. Each change must begin with the content at which the one before ended. */
function licenseAfter(baseline: unknown, events: readonly Readonly<Record<string, unknown>>[]): unknown {
  let license = licenseOf(baseline)
  for (const { event_type: type, changed_output: changed, previous_output: previous } of events) {
    if (type === 'completion') continue
    expectEqual('the type of an event', type, 'snapshot')
    expectEqual('the license before a change', licenseOf(contentOf(previous)), license)
    license = licenseOf(contentOf(changed))
  }
  return license
}

function contentOf(output: unknown): unknown {
  return isObject(output) ? output['content'] : undefined
}

function licenseOf(content: unknown): unknown {
  return isObject(content) ? content['license'] : undefined
}

/** The monitors that have reported a change. */
async function monitorsWithDetections(api: Api, ids: readonly string[]): Promise<string[]> {
  const events = await Promise.all(ids.map((id) => eventsOfMonitor(api, id)))
  return ids.filter((_, index) => events[index]?.some(({ event_type: type }) => type === 'snapshot'))
}

/** All events of a monitor, oldest first, with completions. */
async function eventsOfMonitor(api: Api, id: string): Promise<Record<string, unknown>[]> {
  const newestFirst: Record<string, unknown>[] = []
  for (let cursor = ''; ;) {
    const page = await api.send(
      `/v1/monitors/${id}/events?include_completions=true&limit=100&cursor=${cursor}`,
    )
    const { events, next_cursor: next } = page
    if (!Array.isArray(events)) throw new Error('no events')
    newestFirst.push(...events.filter(isObject))
    if (typeof next !== 'string') return newestFirst.toReversed()
    cursor = encodeURIComponent(next)
  }
}

/** The type of a webhook, and what it is about. */
function subjectOf(body: unknown): string {
  const { type, data } = isObject(body) ? body : {}
  if (!isObject(data)) return String(type)
  const { run_id, findall_id, monitor_id, event } = data
  // The execution of a detected change has no time.
  const time = isObject(event) ? ` ${String(event['timestamp'] ?? event['event_group_id'])}` : ''
  return `${String(type)} ${String(run_id ?? findall_id ?? monitor_id)}${time}`
}

function without(all: readonly string[], some: readonly string[]): string[] {
  const had = new Set(some)
  return all.filter((entry) => !had.has(entry))
}

function expectEqual(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${what} is ${String(found)}, not ${String(expected)}`)
}

async function waitFor(what: string | (() => string), isThere: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE
  while (!(await isThere())) {
    if (performance.now() > end)
      throw new Error(`waited in vain: ${typeof what === 'string' ? what : what()}`)
    await setTimeout(50)
  }
}
