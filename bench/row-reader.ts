import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { messageOf } from './child.ts'
import { startServer } from './server.ts'
import type { BenchServer } from './server.ts'

/** The server `gateway`, with a token for it. */
export interface RowServer {
  readonly server: BenchServer
  readonly token: string
}

/** Starts the server `gateway` over a log in this file, or in `memory`. */
export async function startRowServer(file: string): Promise<RowServer> {
  const server = await startServer('gateway', [file])
  const { token } = Object(await messageOf(server.process, 'the server gateway', 'sent a token'))
  return { server, token: String(token) }
}

/** Reads rows from a gateway or a bare server by a socket, the same for both, so that the reader costs little. */
export class RowReader {
  readonly #socket: Socket
  #rest = ''
  /** Called for each row, with its time in ns. */
  onRow: (at: bigint) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding('latin1').on('data', (text: string) => this.#take(text))
  }

  /** Resolves once it gets what is written. */
  static async open({ server: { url }, token }: RowServer, side: 'gateway' | 'bare'): Promise<RowReader> {
    const { port } = new URL(url)
    const socket = connect(Number(port), '127.0.0.1')
    const reader = new RowReader(socket)
    const body = JSON.stringify({ views: [{ view: 'events' }] })
    const request =
      side === 'bare'
        ? 'GET /bare HTTP/1.1\r\nhost: localhost\r\n\r\n'
        : `POST /live/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n` +
          `content-length: ${body.length}\r\n\r\n${body}`
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      // Of a gateway, the rows that there are.
      const until = side === 'bare' ? '\r\n\r\n' : '"position":'
      let head = ''
      const onData = (text: string) => {
        head += text
        if (!head.includes(until)) return
        socket.off('data', onData)
        resolve()
      }
      socket.on('data', onData).write(request)
    })
    return reader
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(text: string): void {
    const all = this.#rest + text
    let end = 0
    for (const found of all.matchAll(/\{"at":"(\d+)"/g)) {
      const [row, at = ''] = found
      end = found.index + row.length
      this.onRow(BigInt(at))
    }
    this.#rest = all.slice(Math.max(end, all.length - 40))
  }
}
