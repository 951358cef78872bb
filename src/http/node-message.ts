/**
 * The part that `IncomingMessage` of `node:http` and `Http2ServerRequest` of `node:http2` have in common, so that a project without
 * types of Node can compile.
 */
export interface NodeIncoming {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly httpVersionMajor: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders: readonly string[]
  /** Whether the whole body has arrived. */
  readonly complete: boolean
  readonly destroyed: boolean
  readonly readableDidRead: boolean
  readonly readableEncoding: string | null
  readonly socket: {
    readonly destroyed: boolean
    on(event: 'close', listener: () => void): unknown
    off(event: 'close', listener: () => void): unknown
  }
  iterator(options: {
    /** Whether leaving the loop destroys the stream. */
    readonly destroyOnReturn: boolean
  }): AsyncIterator<Uint8Array>
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown
  on(event: 'end' | 'close', listener: () => void): unknown
  once(event: 'close', listener: () => void): unknown
  resume(): unknown
  destroy(): unknown
}

/** The part of a `Readable` of Node that is a body. */
export type NodeBody = Pick<NodeIncoming, 'destroyed' | 'on' | 'resume'>

/** The part that `ServerResponse` of `node:http` and `Http2ServerResponse` of `node:http2` have in common. */
export interface NodeOutgoing {
  readonly headersSent: boolean
  /** The stream of a request over HTTP/2. */
  readonly stream?: { readonly destroyed: boolean }
  setHeader(name: string, value: number | string | readonly string[]): unknown
  /** Sets several headers at once. HTTP/1.1 only. */
  setHeaders?(headers: Headers): unknown
  flushHeaders?(): void
  writeHead(status: number): unknown
  write(chunk: Uint8Array): boolean
  end(): unknown
  destroy(): unknown
  on(event: 'close' | 'drain', listener: () => void): unknown
  off(event: 'close' | 'drain', listener: () => void): unknown
}

/** Headers that belong to one connection of HTTP/1.1. HTTP/2 refuses them (RFC 9113, section 8.2.2). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/** Sets the headers of a response, without those that its version of HTTP does not have. */
export function setHeaders(incoming: NodeIncoming, outgoing: NodeOutgoing, headers: Headers): void {
  if (outgoing.setHeaders !== undefined) {
    outgoing.setHeaders(headers)
    return
  }
  for (const [name, value] of fieldsOf(headers)) {
    if (incoming.httpVersionMajor < 2 || !HOP_BY_HOP.has(name)) outgoing.setHeader(name, value)
  }
}

/** The fields of the headers, each name once: each cookie has its own field. */
function fieldsOf(headers: Headers): ReadonlyMap<string, string | readonly string[]> {
  const fields = new Map<string, string | readonly string[]>(headers)
  const cookies = headers.getSetCookie()
  if (cookies.length > 0) fields.set('set-cookie', cookies)
  return fields
}

/**
 * Calls the function once, when the response was sent or can no longer be sent. Returns a function that removes the listener.
 *
 * The socket is watched too: in some versions of Node, a response queued behind a pipelined one emits no `close`. Streams of HTTP/2
 * share a socket, which outlives them.
 */
export function onceClosed(incoming: NodeIncoming, outgoing: NodeOutgoing, call: () => void): () => void {
  const { socket } = incoming
  const stop = () => {
    socket.off('close', close)
    outgoing.off('close', close)
  }
  const close = () => {
    stop()
    call()
  }
  socket.on('close', close)
  outgoing.on('close', close)
  return stop
}

/** Whether the response can no longer be sent. */
export function isGone(incoming: NodeIncoming, outgoing: NodeOutgoing): boolean {
  return incoming.socket.destroyed || outgoing.stream?.destroyed === true
}
