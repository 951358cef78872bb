import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { LogStore } from 'rivulet/log/store'
import { createDashboard } from 'rivulet/dashboard'
import type { Dashboard, DashboardOptions } from 'rivulet/dashboard'
import { nodeListener } from 'rivulet/webhooks'
import { onTestFinished } from 'vitest'
import { append } from '../log/append.ts'
import { serve } from '../support/serve.ts'

/** A dashboard at a port of this machine. */
export interface ServedDashboard {
  readonly store: LogStore
  readonly dashboard: Dashboard
  /** Without the key. */
  readonly url: string
  /** Requests a path as a browser that has the cookie. */
  fetch(path: string, init?: RequestInit): Promise<Response>
}

/** Serves the dashboard of a log in memory with these events, until the test ends. */
export async function served(
  options: Partial<DashboardOptions> = {},
  events: readonly ResearchEvent[] = [],
): Promise<ServedDashboard> {
  const store = memoryStore()
  const log = await openLog(store)
  onTestFinished(() => log.close())
  if (events.length > 0) await append(store, events)
  const dashboard = createDashboard({ log, ...options })
  onTestFinished(() => dashboard.close())
  const url = await serve(nodeListener(dashboard))
  const cookie = cookieOf(await fetch(dashboard.address(url)))
  return {
    store,
    dashboard,
    url,
    fetch: (path, init = {}) => {
      const headers = new Headers(init.headers)
      headers.set('cookie', cookie)
      return fetch(new URL(path, url), { ...init, headers })
    },
  }
}

/** What a browser sends back after this response. */
export function cookieOf(response: Response): string {
  return response.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ')
}
