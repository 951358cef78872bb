import { createServer } from 'node:http'
import type { ResearchClient } from 'rivulet'
import type { EventLog } from 'rivulet/log'
import { createDashboard } from 'rivulet/dashboard'
import type { FindDocument } from 'rivulet/dashboard'
import { nodeListener } from 'rivulet/webhooks'
import { listenOn } from './listening.ts'
import type { Logger } from './log.ts'

/** A dashboard with an HTTP server. Disposing of it closes both. */
export interface DashboardEndpoint extends AsyncDisposable {
  /** The address of the dashboard, with the key. */
  readonly url: string
}

/** Settings of {@link openDashboard}. */
export interface DashboardEndpointOptions {
  readonly log: EventLog
  /** Client for searches and added runs. */
  readonly client?: ResearchClient | undefined
  readonly documents?: FindDocument | undefined
  /** 0 is any free port. Default 0. */
  readonly port?: number
  readonly logger: Logger
}

/** Other machines cannot reach it. */
const HOST = '127.0.0.1'

/** Serves the dashboard of a log on a port of this machine. */
export async function openDashboard({
  log,
  client,
  documents,
  port = 0,
  logger,
}: DashboardEndpointOptions): Promise<DashboardEndpoint> {
  const dashboard = createDashboard({
    log,
    ...(client !== undefined && { client }),
    ...(documents !== undefined && { documents }),
  })
  // The other views continue.
  dashboard.done.catch((error: unknown) => logger.error({ error: String(error) }, 'a view has ended'))
  const server = createServer(nodeListener(dashboard))
  const bound = await listenOn(server, port, HOST).catch(async (error: unknown) => {
    await dashboard.close()
    throw error
  })

  return {
    url: dashboard.address(`http://${HOST}:${bound}`),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      await dashboard.close()
      server.closeAllConnections()
      await closed
    },
  }
}
