import { connect } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Caller } from './running.ts'

/** A raw response. */
export class Wire {
  /** All received bytes. */
  bytes = Buffer.alloc(0)
  /** Resolves when the connection is closed, cleanly or not. */
  readonly closed: Promise<void>
  readonly #socket

  constructor({ service, url }: Caller, path: string, method: 'GET' | 'POST' = 'GET', body = '') {
    const { hostname, port } = new URL(url)
    this.#socket = connect(Number(port), hostname)
    this.#socket.on('data', (chunk) => (this.bytes = Buffer.concat([this.bytes, chunk])))
    this.#socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => this.#socket.on('close', () => resolve()))
    onTestFinished(() => void this.#socket.destroy())
    const head = [
      `${method} ${path} HTTP/1.1`,
      'host: localhost',
      `x-api-key: ${service.apiKey}`,
      `content-length: ${Buffer.byteLength(body)}`,
      'connection: close',
    ]
    this.#socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && !this.#socket.readableEnded
  }

  get status(): number {
    return Number(this.#head.split(' ')[1])
  }

  header(name: string): string | undefined {
    return new RegExp(`^${name}: (.*)$`, 'im').exec(this.#head)?.[1]?.trim()
  }

  /** The bytes after the headers. */
  get body(): Buffer {
    return this.bytes.subarray(this.bytes.indexOf('\r\n\r\n') + 4)
  }

  /** The chunks of the body, whether the final chunk arrived, and the number of bytes that the last chunk lacks. */
  get chunked(): { readonly chunks: Buffer[]; readonly isComplete: boolean; readonly missing: number } {
    const chunks: Buffer[] = []
    let rest = this.body
    while (rest.length > 0) {
      const end = rest.indexOf('\r\n')
      const size = Number.parseInt(rest.subarray(0, end).toString(), 16)
      if (size === 0) return { chunks, isComplete: true, missing: 0 }
      const chunk = rest.subarray(end + 2, end + 2 + size)
      chunks.push(chunk)
      if (chunk.length < size) return { chunks, isComplete: false, missing: size - chunk.length }
      rest = rest.subarray(end + 2 + size + 2)
    }
    return { chunks, isComplete: false, missing: 0 }
  }

  /** The body without chunked encoding. */
  get content(): Buffer {
    return Buffer.concat(this.chunked.chunks)
  }

  /** Resolves when the given number of complete events has arrived. */
  async events(count: number): Promise<void> {
    while (this.content.toString().split('\ndata: ').length - 1 < count) {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  get #head(): string {
    return this.bytes.subarray(0, this.bytes.indexOf('\r\n\r\n')).toString()
  }
}

/** The whole response, however it ended. */
export async function wire(
  caller: Caller,
  path: string,
  method?: 'GET' | 'POST',
  body?: string,
): Promise<Wire> {
  const answer = new Wire(caller, path, method, body)
  await answer.closed
  return answer
}
