import { type Context, Hono } from 'hono'
import { DEFAULT_PAGE_LIMIT } from '../../protocol/limits.ts'
import type { ListMonitorsQuery, UpdateMonitorRequest } from '../../protocol/monitor.ts'
import {
  listMonitorsQuery,
  monitorEventsQuery,
  updateMonitorRequest,
} from '../../protocol/requests/monitors.ts'
import { problem } from '../http/problem.ts'
import { bodySchema, querySchema } from '../http/request-schema.ts'
import { issue, readJson, readQuery, unprocessable } from '../http/validation.ts'
import { decodeCursor, encodeCursor } from './cursor.ts'
import type { EventLog, MonitorEventPage } from './event-log.ts'
import { createMonitorBody, type MonitorRequest } from './request.ts'
import type { MonitorStore, StoredMonitor } from './store.ts'
import { toWire } from './wire.ts'

/** Settings of {@link monitorRoutes}. */
export interface MonitorRoutesOptions {
  readonly store: MonitorStore
  readonly log: EventLog
  /** Adds a monitor, executes it once and resolves with its id. */
  readonly create: (request: MonitorRequest) => Promise<string>
  /** Changes the given fields of a monitor. Rejects with the problem of the request, if there is one. */
  readonly update: (monitor: StoredMonitor, changes: UpdateMonitorRequest) => Promise<void>
  /** Cancels a monitor, and aborts its execution. */
  readonly cancel: (monitor: StoredMonitor) => void
  /** Executes a monitor once, outside of its schedule. */
  readonly trigger: (monitor: StoredMonitor) => void
}

const updateBody = bodySchema(updateMonitorRequest)
const listQuery = querySchema(listMonitorsQuery)
const eventsQuery = querySchema(monitorEventsQuery)

/** Monitors a page when none is asked for; beyond the interface document. */
const DEFAULT_MONITORS_LIMIT = 100

/** The scope of cursors in the list of monitors; not the id of any monitor. */
const MONITORS = 'monitors'

/** The endpoints of monitors (§4.1, §4.2; create, list, get, update and trigger beyond the interface document). */
export function monitorRoutes({ store, log, create, update, cancel, trigger }: MonitorRoutesOptions): Hono {
  const routes = new Hono()

  routes.post('/', async (c) => {
    const request = await readJson(c, createMonitorBody, unprocessable)
    const { processor = 'lite' } = request
    const id = await create({ ...request, processor })
    return c.json(toWire(find(id)), 201)
  })

  routes.get('/', (c) => c.json(listPage(store, readQuery(c, listQuery, unprocessable))))

  routes.get('/:monitor_id', (c) => c.json(toWire(find(c.req.param('monitor_id')))))

  routes.post('/:monitor_id/cancel', (c) => {
    const monitor = find(c.req.param('monitor_id'))
    cancel(monitor)
    return c.json(toWire(find(monitor.id)))
  })

  routes.post('/:monitor_id/update', async (c) => {
    const monitor = find(c.req.param('monitor_id'))
    await update(monitor, await readJson(c, updateBody, unprocessable))
    return c.json(toWire(find(monitor.id)))
  })

  routes.post('/:monitor_id/trigger', (c) => {
    const monitor = find(c.req.param('monitor_id'))
    if (monitor.status === 'cancelled') {
      throw problem(409, `Monitor ${monitor.id} is cancelled: create a new one`)
    }
    trigger(monitor)
    return c.body(null, 204)
  })

  routes.get('/:monitor_id/events', (c) => {
    const { id } = find(c.req.param('monitor_id'))
    const page = eventPage(log, id, c)
    return c.json({
      events: page.events,
      ...(page.next !== undefined && { next_cursor: encodeCursor(id, page.next) }),
      ...(page.warnings.length > 0 && { warnings: page.warnings }),
    })
  })

  function find(id: string): StoredMonitor {
    const monitor = store.get(id)
    if (monitor === undefined) throw problem(404, `There is no monitor ${id}`)
    return monitor
  }

  return routes
}

/** A page of the list of monitors, newest first. */
function listPage(
  store: MonitorStore,
  { cursor, limit = DEFAULT_MONITORS_LIMIT, type, status }: ListMonitorsQuery,
) {
  const found = store.list({
    before: position(MONITORS, cursor) ?? Number.MAX_SAFE_INTEGER,
    limit: limit + 1,
    types: type === undefined ? undefined : [type].flat(),
    statuses: status === undefined ? undefined : [status].flat(),
  })
  const monitors = found.slice(0, limit)
  const last = monitors.at(-1)
  return {
    monitors: monitors.map(toWire),
    ...(found.length > limit && last !== undefined && { next_cursor: encodeCursor(MONITORS, last.position) }),
  }
}

function eventPage(log: EventLog, id: string, c: Context): MonitorEventPage {
  // An execution has a single page. Paging parameters are ignored, even invalid ones (§4.1).
  const group = c.req.query('event_group_id') || c.req.query('monitor_group_id') || undefined
  const query = readQuery(c, eventsQuery, unprocessable, group === undefined ? [] : ['cursor', 'limit'])
  const { cursor, limit = DEFAULT_PAGE_LIMIT, include_completions = false } = query
  if (group !== undefined) return log.execution(id, group, include_completions)
  return log.page(id, position(id, cursor), limit, include_completions)
}

function position(scope: string, cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  const found = decodeCursor(scope, cursor)
  if (found === undefined) {
    throw unprocessable([issue(['query', 'cursor'], 'Expected a next_cursor of this list')])
  }
  return found
}
