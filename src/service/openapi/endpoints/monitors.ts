import {
  createMonitorRequest,
  listMonitorsQuery,
  monitorEventsQuery,
  updateMonitorRequest,
} from '../../../protocol/requests/monitors.ts'
import { monitor, monitorEvents, monitorList } from '../answers/monitors.ts'
import type { Endpoint } from '../endpoint.ts'

const area = 'Monitors'

/** The endpoints of monitors (§4.1, §4.2; create, list, get, update and trigger beyond the interface document). */
export const monitorEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/v1/monitors',
    operationId: 'createMonitor',
    summary: 'Creates a monitor, and executes it once',
    area,
    body: { name: 'CreateMonitorRequest', schema: createMonitorRequest },
    status: 201,
    answer: monitor,
    quota: 'monitors',
  },
  {
    method: 'GET',
    path: '/v1/monitors',
    operationId: 'listMonitors',
    summary: 'Lists monitors, newest first',
    area,
    query: listMonitorsQuery,
    answer: monitorList,
  },
  {
    method: 'GET',
    path: '/v1/monitors/:monitor_id',
    operationId: 'getMonitor',
    summary: 'Returns a monitor',
    area,
    answer: monitor,
  },
  {
    method: 'POST',
    path: '/v1/monitors/:monitor_id/cancel',
    operationId: 'cancelMonitor',
    summary: 'Cancels a monitor (§4.2)',
    area,
    answer: monitor,
  },
  {
    method: 'POST',
    path: '/v1/monitors/:monitor_id/update',
    operationId: 'updateMonitor',
    summary: 'Changes the given fields of a monitor. Null removes a webhook or metadata',
    area,
    body: { name: 'UpdateMonitorRequest', schema: updateMonitorRequest },
    answer: monitor,
  },
  {
    method: 'POST',
    path: '/v1/monitors/:monitor_id/trigger',
    operationId: 'triggerMonitor',
    summary: 'Executes a monitor once, outside of its schedule',
    area,
    status: 204,
    errors: { 409: 'The monitor is cancelled' },
  },
  {
    method: 'GET',
    path: '/v1/monitors/:monitor_id/events',
    operationId: 'listMonitorEvents',
    summary: 'Lists the events of a monitor, newest first (§4.1)',
    area,
    query: monitorEventsQuery,
    answer: monitorEvents,
  },
]
