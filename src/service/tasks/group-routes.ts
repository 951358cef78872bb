import type { ServerResponse } from 'node:http'
import { type Context, Hono } from 'hono'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { HttpBindings } from '@hono/node-server'
import {
  addRunsQuery,
  addRunsRequest,
  createGroupRequest,
  groupEventsQuery,
  groupRunsQuery,
} from '../../protocol/requests/tasks.ts'
import { FIELD_BASIS_BETA } from '../../protocol/betas.ts'
import type { AddRunsRequest, AddRunsResponse, TaskGroup } from '../../protocol/task-group.ts'
import type { Clock } from '../clock.ts'
import { hasBeta } from '../http/betas.ts'
import { streamEvents, type EventFeed, type EventStreamOptions } from '../http/event-stream.ts'
import { type HttpProblem, invalidRequest, problem } from '../http/problem.ts'
import { bodySchema, querySchema } from '../http/request-schema.ts'
import { issue, readJson, readQuery } from '../http/validation.ts'
import type { GroupStream, LogView } from './group-log.ts'
import { newRuns, type SchemaChecks, unknownInteractions } from './run-request.ts'
import type { TaskStore } from './task-store.ts'

/** A request for a group's stream. */
interface GroupStreamRequest {
  readonly path: string
  readonly groupId: string
  /** Position in the group's log after which the stream starts. */
  readonly position: number
  /** The group's log after a position. */
  readonly feedFrom: (position: number) => EventFeed
}

/** Streams a group's log to the response. Returns a function that ends the stream. */
export type OpenGroupStream = (
  outgoing: ServerResponse,
  request: GroupStreamRequest,
  options: EventStreamOptions,
) => () => void

/** Settings of {@link groupRoutes}. */
export interface GroupRoutesOptions {
  readonly store: TaskStore
  /** Checks the schemas of requests. */
  readonly checks: SchemaChecks
  /** The clock of connections: real time, except in tests. */
  readonly clock: Clock
  /** Default: without faults. */
  readonly openStream?: OpenGroupStream | undefined
  /** Called before each request for a known group. An error that it throws is the response. */
  readonly beforeRequest?: ((groupId: string) => void) | undefined
  /** Maximum duration of a stream, in ms of real time (§4.4). */
  readonly streamDuration: number
  /** Called before runs are added, with their number. An error that it throws is the response. */
  readonly beforeRuns: (count: number) => void
  /** Called when runs were added. */
  readonly onRuns: () => void
  /** Called with errors of a stream, and the `ref_id` that the client got. */
  readonly onError: (error: unknown, ref_id: string) => void
  /** The functions that end open streams, for closing the service. */
  readonly streams: Set<() => void>
}

const createGroupBody = bodySchema(createGroupRequest).nullish()
const addRunsBody = bodySchema(addRunsRequest)
const addRunsParameters = querySchema(addRunsQuery)
const eventsQuery = querySchema(groupEventsQuery)
const runsQuery = querySchema(groupRunsQuery)

/** Routes of task groups (§4.3, §4.4, §4.5), mounted under both prefixes; creating and getting one is beyond the interface document. */
export function groupRoutes(options: GroupRoutesOptions) {
  const { store, beforeRequest } = options
  const requested = (id: string): TaskGroup => {
    const group = existing(store, id)
    beforeRequest?.(id)
    return group
  }
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/', async (c) => {
    const body = await readJson(c, createGroupBody, invalidRequest)
    return c.json(store.createGroup(body?.metadata))
  })

  routes.get('/:taskgroup_id', (c) => c.json(requested(c.req.param('taskgroup_id'))))

  routes.get('/:taskgroup_id/runs/:run_id', (c) => {
    const group = requested(c.req.param('taskgroup_id'))
    const run = store.run(c.req.param('run_id'))
    if (run === undefined || run.taskgroup_id !== group.taskgroup_id) {
      throw problem(404, `Task run not found in ${group.taskgroup_id}: ${c.req.param('run_id')}`)
    }
    return c.json(run)
  })

  routes.post('/:taskgroup_id/runs', async (c) => {
    const group = requested(c.req.param('taskgroup_id'))
    const { refresh_status = true } = readQuery(c, addRunsParameters, invalidRequest)
    const request = await readJson(c, addRunsBody, invalidRequest)
    const added = await addRuns(options, group.taskgroup_id, request, hasBeta(c, FIELD_BASIS_BETA))
    return c.json(refresh_status ? added : { ...added, status: group.status })
  })

  routes.get('/:taskgroup_id/events', (c) => {
    const { taskgroup_id } = requested(c.req.param('taskgroup_id'))
    const { last_event_id = '', timeout } = readQuery(c, eventsQuery, invalidRequest)
    const position = positionOf(store, taskgroup_id, 'events', last_event_id)
    const feedFrom = (after: number) => groupFeed(store, taskgroup_id, { stream: 'events' }, after)
    return open(c, { path: c.req.path, groupId: taskgroup_id, position, feedFrom }, options, timeout)
  })

  routes.get('/:taskgroup_id/runs', (c) => {
    const { taskgroup_id } = requested(c.req.param('taskgroup_id'))
    const query = readQuery(c, runsQuery, invalidRequest)
    const { last_event_id = '', status, include_input = false, include_output = false } = query
    const position = positionOf(store, taskgroup_id, 'runs', last_event_id)
    const view = { status, includeInput: include_input, includeOutput: include_output }
    const feedFrom = (after: number) => groupFeed(store, taskgroup_id, { stream: 'runs', view }, after)
    return open(c, { path: c.req.path, groupId: taskgroup_id, position, feedFrom }, options)
  })

  return routes
}

async function addRuns(
  { store, checks, beforeRuns, onRuns }: GroupRoutesOptions,
  groupId: string,
  { inputs, default_task_spec }: AddRunsRequest,
  elementBasis: boolean,
): Promise<AddRunsResponse> {
  const { runs, issues } = await newRuns(checks, inputs, default_task_spec)
  const unknown = unknownInteractions(
    inputs,
    (id) => store.isInteraction(id),
    (index) => ['body', 'inputs', String(index)],
  )
  if (issues.length + unknown.length > 0) throw invalidRequest([...issues, ...unknown])
  beforeRuns(runs.length)
  const added = store.addRuns(
    groupId,
    runs.map((run) => Object.assign(run, { elementBasis })),
  )
  onRuns()
  return added
}

function existing(store: TaskStore, id: string): TaskGroup {
  const group = store.group(id)
  if (group === undefined) throw groupNotFound(id)
  return group
}

/** The response to requests for an unknown group. */
export function groupNotFound(id: string): HttpProblem {
  return problem(404, `Task group not found: ${id}`)
}

/** The position of a `last_event_id` in the log. */
function positionOf(store: TaskStore, groupId: string, stream: GroupStream, lastEventId: string): number {
  const position = store.log.position(groupId, stream, lastEventId)
  if (position !== undefined) return position
  throw invalidRequest([
    issue(['query', 'last_event_id'], `This stream has given out no event with the id ${lastEventId}`),
  ])
}

const openGroupStream: OpenGroupStream = (outgoing, { position, feedFrom }, options) =>
  streamEvents(outgoing, feedFrom(position), options)

function open(
  { env: { outgoing } }: Context<{ Bindings: HttpBindings }>,
  request: GroupStreamRequest,
  { clock, openStream = openGroupStream, streamDuration, streams, onError }: GroupRoutesOptions,
  timeout?: number,
): Response {
  const silence = timeout === undefined ? undefined : timeout * 1_000
  const end = openStream(outgoing, request, { clock, duration: streamDuration, silence, onError })
  streams.add(end)
  outgoing.on('close', () => streams.delete(end))
  return RESPONSE_ALREADY_SENT
}

/**
 * A group's log from a position, until no run is active and all events are read. For a group without runs, the events are
 * its status only.
 */
function groupFeed(
  store: TaskStore,
  groupId: string,
  { stream, view }: { readonly stream: GroupStream; readonly view?: LogView },
  after: number,
): EventFeed {
  let reached = after
  let begun = false
  return {
    next() {
      const page = store.log.read(groupId, stream, reached, view)
      reached = page.position
      if (begun || stream === 'runs' || reached > 0) return page.events
      begun = true
      return store.log.beginning(groupId, existing(store, groupId).status)
    },
    get ended() {
      return store.group(groupId)?.status.is_active !== true
    },
    onMore: (listener) => store.changes.on(groupId, listener),
  }
}
