import type { Server } from 'node:http'
import { isIPv6, type AddressInfo } from 'node:net'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import type { Hono } from 'hono'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkBoolean, checkInteger, checkText } from '../protocol/check.ts'
import type { ListenOptions } from './listen-options.ts'

const DEFAULT_HOST = '127.0.0.1'

/** How long closing waits for open responses before it destroys their connections, in ms of real time. */
const CLOSE_GRACE = 1_000

/** The HTTP server around the application. */
export interface Listener {
  /** Resolves with the base address once it listens. */
  listen(options: ListenOptions): Promise<string>
  /**
   * Accepts no new request, and resolves when the open ones have ended. After a second their connections are destroyed;
   * their handlers are still awaited.
   */
  close(): Promise<void>
}

/** On `@hono/node-server` and not on `nodeListener`: it makes a `Request` only for a route that needs one, and gives the objects of `node:http`. */
export function createListener(app: Hono<{ Bindings: HttpBindings }>): Listener {
  /** Pending responses. A handler may use the database long after its caller has disconnected. */
  const pending = new Set<Promise<unknown>>()

  function tracked(response: Response | Promise<Response>): Response | Promise<Response> {
    if (response instanceof Promise) {
      const settled = () => pending.delete(response)
      pending.add(response)
      response.then(settled, settled)
    }
    return response
  }

  // A library must not replace globals of the process.
  const server = createAdaptorServer({
    fetch: (request, bindings) => tracked(app.fetch(request, bindings)),
    overrideGlobalObjects: false,
  }) as Server

  return {
    async listen({ port = 0, host = DEFAULT_HOST, allowRemote = false }) {
      checkBoolean('allowRemote', allowRemote)
      checkInteger('port', port, 0, 65_535)
      checkText('host', host)
      if (!allowRemote && !isLoopback(host)) {
        throw new ArgumentError('host', 'a loopback address, unless allowRemote is true', host)
      }
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          resolve()
        })
      })
      return baseUrl(server.address())
    },

    async close() {
      if (!server.listening) return
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE)
      await closed
      clearTimeout(cut)
      await Promise.allSettled(pending)
    },
  }
}

/** Whether other machines can reach a service that listens like this. */
export function isExposed({ host = DEFAULT_HOST }: ListenOptions): boolean {
  return !isLoopback(host)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** The base URL for clients on this machine. */
function baseUrl(address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new Error('the server does not listen on a port')
  const loopbackOf: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const host = loopbackOf[address.address] ?? address.address
  return `http://${isIPv6(host) ? `[${host}]` : host}:${address.port}`
}
