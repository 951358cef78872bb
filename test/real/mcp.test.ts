import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { createResearchService } from 'rivulet/service'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { append } from '../log/append.ts'
import { change } from '../operators/events.ts'
import { unmarked } from '../service/mcp/calling.ts'

const MODULES = resolve(import.meta.dirname, 'mcp/node_modules')
const MAIN = resolve(import.meta.dirname, '../../src/cli/main.ts')
const run = promisify(execFile)

/**
 * The scenarios of the conformance tests that apply, by revision. The others call tools, prompts and resources that only a server made
 * for them has, or features that this one does not claim: prompts, completion, logging, sampling, elicitation, sessions, tasks, skills.
 */
const SCENARIOS = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'resources-list', 'dns-rebinding-protection'],
  '2026-07-28': [
    'server-stateless',
    'tools-list',
    'resources-list',
    'sep-2164-resource-not-found',
    'dns-rebinding-protection',
    'caching',
    'http-header-validation',
    'server-sse-multiple-streams',
    'input-required-result-unsupported-methods',
  ],
} as const
/** Checks of these scenarios that need a tool made for them, or prompts. */
const NOT_APPLICABLE: ReadonlySet<string> = new Set([
  'sep-2575-server-rejects-undeclared-capability',
  'sep-2575-missing-capability-http-400',
  'sep-2575-http-server-no-independent-requests-on-stream',
  'sep-2575-server-no-log-without-loglevel',
  'sep-2549-prompts-list-caching-hints',
])

/** A server, and the header that it asks for. */
interface ToolHost {
  readonly url: string
  readonly header: readonly [name: string, value: string]
}

const hosts = new Map<string, ToolHost>()
const HOSTS = ['POST /mcp of the service', 'rivulet mcp --http']
const closing: (() => unknown)[] = []
/** Starts `rivulet mcp` for the service and a log. */
let command: readonly string[]
let env: Record<string, string>

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-mcp-'))
  closing.push(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'tides.md'), '# Tides\n\nTides rise and fall as the moon pulls at the sea.\n')
  const service = await createResearchService({
    docs: folder,
    processor: {
      async run({ input, report }, signal) {
        if (input.input === 'wait') await new Promise((_, stop) => signal.addEventListener('abort', stop))
        for (const meter of [10, 50, 90]) report({ message: { kind: 'search', text: `${meter} %` }, meter })
        return { output: { type: 'text', content: `about ${String(input.input)}`, basis: [] } }
      },
    },
  })
  closing.push(() => service.close())
  const url = await service.listen()
  const place = join(folder, 'log.db')
  const store = sqliteStore(place)
  const log = await openLog(store)
  await append(store, [change('news')])
  await log.close()

  env = { PATH: process.env['PATH'] ?? '', RIVULET_BASE_URL: url, RIVULET_API_KEY: service.apiKey }
  command = ['--conditions=rivulet-source', MAIN, 'mcp', '--allow-actions', '--log', place]
  const child = spawn(process.execPath, [...command, '--http', '--json'], { env })
  closing.push(() => child.kill('SIGKILL'))
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { mcp } = JSON.parse(line)
  hosts.set('POST /mcp of the service', { url: `${url}/mcp`, header: ['x-api-key', service.apiKey] })
  hosts.set('rivulet mcp --http', { url: mcp.url, header: ['authorization', `Bearer ${mcp.token}`] })
})

afterAll(async () => {
  for (const close of closing.toReversed()) await close()
})

function hostOf(name: string): ToolHost {
  const host = hosts.get(name)
  if (host === undefined) throw new Error(`${name} was not started`)
  return host
}

/** A server that adds the header to each request, for a client that cannot. */
async function withHeader({ url, header: [name, value] }: ToolHost): Promise<string> {
  const target = new URL(url)
  const proxy = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming
    const { hostname, port } = target
    const sent = request(
      { hostname, port, method, path, headers: { ...headers, [name]: value } },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(outgoing)
      },
    )
    sent.on('error', () => outgoing.destroy())
    outgoing.on('close', () => sent.destroy())
    incoming.pipe(sent)
  })
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    proxy.close()
    proxy.closeAllConnections()
  })
  const address = proxy.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`
}

/** The checks of a scenario of the conformance tests. */
async function checksOf(url: string, revision: string, scenario: string): Promise<readonly Check[]> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-conformance-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { NODE_OPTIONS: _, ...environment } = process.env
  const args = ['server', '--url', url, '--scenario', scenario, '--spec-version', revision, '-o', folder]
  const program = join(MODULES, '@modelcontextprotocol/conformance/dist/index.js')
  // It ends with 1 when a check fails, and the report says which one.
  await run(process.execPath, [program, ...args], { env: environment }).catch(() => undefined)
  const [name = 'no report: did you run npm ci --prefix test/real/mcp?'] = await readdir(folder)
  return JSON.parse(await readFile(join(folder, name, 'checks.json'), 'utf8'))
}

interface Check {
  readonly id: string
  readonly status: string
  readonly errorMessage?: string
}

describe.each(HOSTS)('%s, for the public conformance tests', (name) => {
  const scenarios = Object.entries(SCENARIOS).flatMap(([revision, names]) =>
    names.map((scenario) => [revision, scenario] as const),
  )
  it.each(scenarios)('conforms to %s: %s', async (revision, scenario) => {
    const checks = await checksOf(await withHeader(hostOf(name)), revision, scenario)
    const applicable = checks.filter(({ id }) => !NOT_APPLICABLE.has(id))

    expect(applicable.filter(({ status }) => status === 'FAILURE')).toEqual([])
    expect(applicable.filter(({ status }) => status === 'SUCCESS').length).toBeGreaterThan(0)
  })
})

describe.each([...HOSTS, 'rivulet mcp'])('%s, for the command of the inspector', (name) => {
  it('has tools, and resources to read', async () => {
    const inspect = async (method: string, ...args: readonly string[]) => {
      const host = hosts.get(name)
      const target =
        host === undefined
          ? [process.execPath, ...command]
          : [host.url, '--transport', 'http', '--header', host.header.join(': ')]
      const variables = Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`])
      const program = join(MODULES, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
      const all = ['--cli', ...(host === undefined ? variables : []), ...target, '--method', method, ...args]
      const { stdout } = await run(process.execPath, [program, ...all], {
        env: { ...process.env, HOME: tmpdir() },
      })
      return JSON.parse(stdout)
    }
    const [search, { tools }, { resourceTemplates }] = await Promise.all([
      inspect('tools/call', '--tool-name', 'web_search', '--tool-arg', 'search_queries=["tides"]'),
      inspect('tools/list'),
      inspect('resources/templates/list'),
    ])

    expect(tools.length).toBeGreaterThanOrEqual(5)
    expect(resourceTemplates).toHaveLength(3)
    expect(unmarked(search.content[0].text)).toContain('Tides rise and fall')
    const [{ url }] = search.structuredContent.results
    const uri = `rivulet://documents/${encodeURIComponent(url)}`
    expect(unmarked((await inspect('resources/read', '--uri', uri)).contents[0].text)).toContain('# Tides')
  })
})

describe.each([...HOSTS, 'rivulet mcp'])('%s, for the client of the official SDK', (name) => {
  /** Its types are not those of the project, which does not depend on it. */
  async function connected(mode: 'legacy' | 'auto') {
    const { Client, StreamableHTTPClientTransport } = await sdk('index.mjs')
    const { StdioClientTransport } = await sdk('stdio.mjs')
    const host = hosts.get(name)
    const transport =
      host === undefined
        ? new StdioClientTransport({ command: process.execPath, args: command, env })
        : new StreamableHTTPClientTransport(new URL(host.url), {
            requestInit: { headers: Object.fromEntries([host.header]) },
          })
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    await client.connect(transport)
    onTestFinished(() => client.close())
    return client
  }
  const sdk = (file: string) => import(join(MODULES, '@modelcontextprotocol/client/dist', file))

  it.each(['legacy', 'auto'] as const)('has valid results, progress and cancellation (%s)', async (mode) => {
    const client = await connected(mode)
    const { tools } = await client.listTools()
    const progress: number[] = []
    const onprogress = ({ progress: each }: { progress: number }) => progress.push(each)
    const answer = await client.callTool({ name: 'research', arguments: { input: 'tides' } }, { onprogress })
    const gone = new AbortController()
    const waiting = client.callTool(
      { name: 'research', arguments: { input: 'wait' } },
      { signal: gone.signal },
    )
    gone.abort()

    expect(tools.map((tool: { name: string }) => tool.name)).toContain('research')
    expect(answer.structuredContent).toMatchObject({
      run: { status: 'completed' },
      output: { content: 'about tides' },
    })
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    await expect(waiting).rejects.toThrow('abort')
    expect((await client.callTool({ name: 'research', arguments: {} })).isError).toBe(true)
  })

  it('answers many calls at once', async () => {
    const client = await connected('auto')
    const calls = Array.from({ length: 100 }, () =>
      client.callTool({ name: 'web_search', arguments: { search_queries: ['tides'] } }),
    )
    const answers = await Promise.all(calls)

    for (const { structuredContent } of answers) expect(structuredContent.results).toHaveLength(1)
  })
})
