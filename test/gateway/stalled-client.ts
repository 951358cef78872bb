import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { ViewRequest } from '../../src/protocol/live.ts'

/** Opens a stream of a gateway over a socket, and reads nothing of it. */
export async function stalledClient(
  url: string,
  token: string,
  views: readonly ViewRequest[],
): Promise<Socket> {
  const { port, host } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.pause()
  const body = JSON.stringify({ views })
  const lines = [
    'POST /live/stream HTTP/1.1',
    `Host: ${host}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)
  return socket
}
