import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { hostHeaderValidationResponse, localhostAllowedHostnames } from '@modelcontextprotocol/server'
import { serveStdio as serveOver, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import type { ResearchClient } from 'rivulet'
import type { EventLog } from 'rivulet/log'
import type { RuleSet } from 'rivulet/rules'
import { nodeListener } from 'rivulet/webhooks'
import { researchResources } from '../../tools/research-resources.ts'
import { researchTools } from '../../tools/research-tools.ts'
import { ToolServer } from '../../tools/tool-server.ts'
import { aborted } from '../interruption.ts'
import { listenOn } from '../listening.ts'
import type { Logger } from '../log.ts'
import { logTools } from './log-tools.ts'

/** Maximum size of a message on stdin, in bytes; as of a request over HTTP. */
const MAX_MESSAGE = 4 * 1024 * 1024
/** Other machines cannot reach it. */
const HOST = '127.0.0.1'
const PATH = '/mcp'

/** What the tools use. */
export interface ToolsOptions {
  readonly client: ResearchClient | undefined
  readonly log: EventLog | undefined
  /** The rules whose conditions are explained. */
  readonly rules: RuleSet | undefined
  /** The name of the process of alert rules in the log. */
  readonly process: string
  readonly allowActions: boolean
}

/** The tools of a service and of a log. */
export function createTools({ client, log, rules, process: name, allowActions }: ToolsOptions): ToolServer {
  return new ToolServer({
    tools: [
      ...(client === undefined ? [] : researchTools(client, allowActions)),
      ...(log === undefined ? [] : logTools({ log, rules, process: name })),
    ],
    resources: client === undefined ? [] : researchResources(client),
  })
}

/**
 * Serves one agent over stdin and stdout, until it closes one of them or the signal aborts. Closes the tools.
 *
 * @throws Error for a message that is too large.
 */
export async function serveStdio(tools: ToolServer, logger: Logger, signal: AbortSignal): Promise<void> {
  const { stdin, stdout } = process
  const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<void>()
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: MAX_MESSAGE })
  let failure: Error | undefined
  const connection = serveOver(() => tools.connection(), {
    transport,
    onerror(error) {
      failure = error
      logger.debug({ error: error.message }, 'a message is not valid')
    },
  })
  const { onclose } = transport
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- A transport is no event target.
  transport.onclose = () => {
    onclose?.()
    if (stdin.readableEnded || stdin.destroyed || failure === undefined) end()
    else fail(failure)
  }
  // The transport buffers the answers that an agent does not read, with listeners for each of them.
  stdout.setMaxListeners(0)
  stdin.on('data', () => {
    if (!stdout.writableNeedDrain) return
    stdin.pause()
    stdout.once('drain', () => stdin.resume())
  })
  try {
    await Promise.race([ended, aborted(signal)])
  } finally {
    await tools.close()
    await connection.close()
    stdin.pause()
  }
}

/** Tools with an HTTP server on this machine. Disposing of it closes both. */
export interface ToolEndpoint extends AsyncDisposable {
  readonly url: string
  /** The token that clients send as `Authorization: Bearer …`. */
  readonly token: string
}

/** Serves tools over HTTP on a port of this machine; 0 is any free port. The token is random by default. */
export async function openHttp(
  tools: ToolServer,
  port: number,
  token = randomBytes(32).toString('base64url'),
): Promise<ToolEndpoint> {
  const expected = digestOf(`Bearer ${token}`)
  const server = createServer(
    nodeListener(async (request) => {
      // A page that a browser shows can have the name of its host lead here.
      const refused = hostHeaderValidationResponse(request, localhostAllowedHostnames())
      if (refused !== undefined) return refused
      if (new URL(request.url).pathname !== PATH) return new Response(null, { status: 404 })
      const given = digestOf(request.headers.get('authorization') ?? '')
      if (timingSafeEqual(given, expected)) return await tools.handle(request)
      return Response.json(
        { error: 'The token is missing or wrong: send Authorization: Bearer …' },
        { status: 401, headers: { 'www-authenticate': 'Bearer' } },
      )
    }),
  )
  const bound = await listenOn(server, port, HOST)

  return {
    url: `http://${HOST}:${bound}${PATH}`,
    token,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      await tools.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Digests have one length, as the comparison needs. */
function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
