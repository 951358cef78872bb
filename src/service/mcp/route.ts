import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import type { TaskOutput } from '../../protocol/output.ts'
import type { TaskRun } from '../../protocol/task.ts'
import { researchResources } from '../../tools/research-resources.ts'
import { researchTools } from '../../tools/research-tools.ts'
import { ToolServer } from '../../tools/tool-server.ts'
import { HttpProblem } from '../http/problem.ts'
import { LIMITS } from '../http/request-limits.ts'
import { readBody, unprocessable } from '../http/validation.ts'
import { extractResponse } from '../openapi/answers/extract.ts'
import { findAllResult } from '../openapi/answers/find-all.ts'
import * as s from '../openapi/answers/kinds.ts'
import { taskOutput } from '../openapi/answers/outputs.ts'
import { searchResponse } from '../openapi/answers/search.ts'
import { taskRun } from '../openapi/answers/tasks.ts'
import { selfContained } from '../openapi/json-schema.ts'
import { serviceResearch, type ServiceResearchOptions } from './research.ts'

/** The path of the tool server; beyond the interface document. */
export const MCP_PATH = '/mcp'

/** The service's own tool server, for language models. */
export interface HostedTools {
  readonly routes: Hono<{ Bindings: HttpBindings }>
  /** Ends all calls. */
  close(): Promise<void>
}

/** The JSON-RPC error of what is no JSON, or too much of it. */
const PARSE_ERROR = -32_700

export function createHostedTools(options: ServiceResearchOptions): HostedTools {
  /** By key, since quotas are. The keys are valid ones, so there are few. */
  const servers = new Map<string, ToolServer>()
  const routes = new Hono<{ Bindings: HttpBindings }>()

  function serverOf(key: string): ToolServer {
    const known = servers.get(key)
    if (known !== undefined) return known
    const research = serviceResearch(options, key)
    const server = new ToolServer({
      tools: researchTools(research, true),
      resources: researchResources(research),
      limits: LIMITS,
      results: RESULTS,
    })
    servers.set(key, server)
    return server
  }

  routes.post(MCP_PATH, async (c) => {
    const { req, env } = c
    let body: unknown
    try {
      body = await readBody(c, unprocessable)
    } catch (error) {
      if (!(error instanceof HttpProblem)) throw error
      return c.json({ jsonrpc: '2.0', id: null, error: { code: PARSE_ERROR, message: error.message } }, 400)
    }
    const gone = new AbortController()
    env.outgoing.on('close', () => gone.abort())
    const { headers, url } = req.raw
    const request = new Request(url, { method: 'POST', headers, signal: gone.signal })
    return await serverOf(req.header('x-api-key') ?? '').handle(request, body)
  })

  return {
    routes,
    async close() {
      await Promise.all([...servers.values()].map((server) => server.close()))
    },
  }
}

const runState = s.object<{ readonly run: TaskRun; readonly output: TaskOutput | null }>(
  { run: taskRun, output: s.orNull(taskOutput) },
  {},
)

/** The JSON Schema of each result. */
const RESULTS = {
  web_search: selfContained(searchResponse),
  web_fetch: selfContained(extractResponse),
  research: selfContained(runState),
  find_all: selfContained(findAllResult),
  research_status: selfContained({ type: 'object', anyOf: [runState, findAllResult] }),
}
