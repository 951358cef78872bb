import type { Server } from 'node:http'
import { isIPv6, type AddressInfo } from 'node:net'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import type { Hono } from 'hono'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkInteger, checkText } from '../protocol/check.ts'
import type { ListenOptions } from './listen-options.ts'

/** How long closing waits for answers under way before it cuts them, in ms of real time. */
const CLOSE_GRACE = 1_000

/** The HTTP server around the application. */
export interface Listener {
  /** Resolves with the base address once it listens. */
  listen(options: ListenOptions): Promise<string>
  /**
   * Takes no new request, and resolves when those under way are over. After a second their connections are cut; what
   * works on the answers is waited for all the same.
   */
  close(): Promise<void>
}

export function createListener(app: Hono<{ Bindings: HttpBindings }>): Listener {
  /** Answers in the making. A caller may be gone long before its handler is done with the database. */
  const underWay = new Set<Promise<unknown>>()

  function counted(answer: Response | Promise<Response>): Response | Promise<Response> {
    if (answer instanceof Promise) {
      const over = () => underWay.delete(answer)
      underWay.add(answer)
      answer.then(over, over)
    }
    return answer
  }

  // A library leaves the globals of the process alone.
  const server = createAdaptorServer({
    fetch: (request, bindings) => counted(app.fetch(request, bindings)),
    overrideGlobalObjects: false,
  }) as Server

  return {
    async listen({ port = 0, host = '127.0.0.1', allowRemote = false }) {
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
      await Promise.allSettled(underWay)
    },
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** The address as a caller on this machine writes it. */
function baseUrl(address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port')
  const everywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const host = everywhere[address.address] ?? address.address
  return `http://${isIPv6(host) ? `[${host}]` : host}:${address.port}`
}
