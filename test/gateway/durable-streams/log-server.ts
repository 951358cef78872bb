import { setImmediate as turn } from 'node:timers/promises'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { LogStore } from 'rivulet/log/store'
import { nodeListener } from 'rivulet/webhooks'
import { VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import type { Access } from '../../../src/gateway/access/access.ts'
import { Authority } from '../../../src/gateway/access/authority.ts'
import { LogStream } from '../../../src/gateway/durable-streams/log-stream.ts'
import type { LogStreamOptions } from '../../../src/gateway/durable-streams/log-stream.ts'
import type { Grant } from '../../../src/gateway/grant.ts'
import { append } from '../../log/append.ts'

/** A grant of everything in the log that the tests append. */
export const ALL: Grant = {
  sub: 'ada',
  sources: ['*'],
  types: ['monitor.event_stream', 'task_group.status', 'task_run.state', 'alert.firing', 'log.gap'],
}

export interface LogServerOptions extends Partial<LogStreamOptions> {
  readonly store?: LogStore
  readonly maxConnections?: number
}

/** A log that real tokens give access to, over real sockets. Grants end in virtual time. */
export async function logServer({
  store = memoryStore(),
  maxConnections,
  ...options
}: LogServerOptions = {}) {
  const scheduler = new VirtualTimeScheduler()
  scheduler.frame = Date.now()
  const log = await openLog(store)
  // Of its own, since the readers of a log keep entries.
  const authorityLog = await openLog(memoryStore())
  const authority = new Authority({
    log: authorityLog,
    tokens: { secret: 's'.repeat(32) },
    views: [],
    path: '',
    maxConnections,
    scheduler,
  })
  const closing = new AbortController()
  const open = new Set<Access>()
  const admit = (access: Access) => {
    const admitted = authority.admit(access)
    if (admitted instanceof Response) return admitted
    open.add(access)
    return () => {
      open.delete(access)
      admitted()
    }
  }
  const streams = new LogStream(log, { closing: closing.signal, ...options })
  const server = createServer(
    nodeListener(async (request) => {
      const access = await authority.authenticate(request)
      if (access instanceof Response) return access
      return streams.respond(request, access, {
        live: () => admit(access),
        read: () => authority.admitRead(access),
      })
    }),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    closing.abort()
    await closed(server)
    await authority.close()
    await authorityLog.close()
    await log.close()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/log`
  const token = (grant: Grant = ALL) => authority.sign(grant)
  return {
    url,
    log,
    authority,
    closing,
    token,
    append: (...events: readonly ResearchEvent[]) => append(store, events),
    /** Resolves once so many live responses are open. */
    async hasOpen(count: number): Promise<void> {
      for (;;) {
        if (open.size === count) return
        await turn()
      }
    },
    /** Cuts each connection. */
    cut: () => server.closeAllConnections(),
    /** Lets time pass for grants, in ms. */
    pass(time: number): void {
      scheduler.maxFrames = scheduler.now() + time
      scheduler.flush()
      scheduler.frame = scheduler.maxFrames
    },
    /** A request with a token. */
    async get(query = '', { grant = ALL, ...init }: RequestInit & { readonly grant?: Grant } = {}) {
      const headers = { authorization: `Bearer ${await token(grant)}`, ...init.headers }
      return fetch(`${url}${query}`, { ...init, headers })
    },
  }
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
