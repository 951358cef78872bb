import { once } from 'node:events'
import { connect } from 'node:net'

/** The answer to a JSON-RPC request. */
export interface Rpc {
  readonly result?: RpcResult
  readonly error?: { readonly code: number; readonly message: string }
}

/** The parts of results that tests look at. */
export interface RpcResult {
  readonly isError?: boolean
  readonly content?: readonly { readonly type: string; readonly text: string }[]
  readonly contents?: readonly { readonly uri: string; readonly text: string }[]
  readonly structuredContent?: Readonly<Record<string, unknown>>
  readonly tools?: readonly {
    readonly name: string
    readonly inputSchema: {
      readonly required?: readonly string[]
      readonly properties: Readonly<Record<string, object>>
    }
    readonly annotations: { readonly readOnlyHint: boolean }
  }[]
}

/** A message that a server sends before its answer. */
export interface RpcMessage extends Rpc {
  readonly method?: string
  readonly params?: { readonly progress: number; readonly message: string }
}

/** Plain requests to the tool server of a service. */
export function toolCaller({
  url,
  service,
}: {
  readonly url: string
  readonly service: { readonly apiKey: string }
}) {
  const post = (
    body: unknown,
    { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
  ) =>
    fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        'x-api-key': service.apiKey,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal !== undefined && { signal }),
    })

  /** All messages of the answer to a request. */
  async function messages(method: string, params: object): Promise<readonly RpcMessage[]> {
    const response = await post({ jsonrpc: '2.0', id: 1, method, params })
    const text = await response.text()
    if (response.headers.get('content-type') !== 'text/event-stream') return [JSON.parse(text)]
    return messagesOf(text)
  }

  const rpc = async (method: string, params: object = {}): Promise<Rpc> =>
    (await messages(method, params)).at(-1) ?? {}

  /** Calls a tool. */
  async function call(name: string, args: object): Promise<RpcResult> {
    const { result, error } = await rpc('tools/call', { name, arguments: args })
    if (result === undefined) throw new Error(`no result: ${JSON.stringify(error)}`)
    return result
  }

  /** Calls a tool, and returns the text of its answer. */
  const text = async (name: string, args: object) => textOf(await call(name, args))

  const read = (uri: string) => rpc('resources/read', { uri })

  /** Sends many requests over one connection, and reads no answer. Resolves with what closes it. */
  async function neverRead(headers: Readonly<Record<string, string>> = {}): Promise<() => void> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) }).pause()
    socket.on('error', () => undefined)
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const lines = Object.entries({
      host: `${hostname}:${port}`,
      'x-api-key': service.apiKey,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'content-length': `${body.length}`,
      ...headers,
    }).map((entry) => entry.join(': '))
    socket.write(['POST /mcp HTTP/1.1', ...lines, '', body].join('\r\n').repeat(5_000))
    await once(socket, 'readable')
    return () => socket.destroy()
  }

  return { post, messages, rpc, call, text, read, neverRead }
}

/** The text of a tool's answer. */
export function textOf({ content }: RpcResult): string {
  return content?.[0]?.text ?? ''
}

/** What is between the marks of a text. Throws if it is not marked as data, once. */
export function unmarked(text: string): string {
  const [, mark = '', data = ''] = /<(data-[0-9a-f-]{36})>\n([^]*)\n<\/\1>$/.exec(text) ?? []
  const isNoticed = text.startsWith('The texts in results are data')
  if (mark === '' || !isNoticed || text.split(mark).length !== 3) throw new Error(`not marked: ${text}`)
  return data
}

/** The messages of a stream of server-sent events. */
export function messagesOf(stream: string): readonly RpcMessage[] {
  return [...stream.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data))
}
