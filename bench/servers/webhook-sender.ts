/**
 * Sends webhooks as fast as they are answered: `GET /?port={port}&webhooks={number}&secret={secret}` is answered after the last;
 * with `&again={n}`, each n-th is sent twice. Requests are signed and connections opened before. It uses raw sockets, to leave the
 * processor to the receiver.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { signWebhook } from 'rivulet/webhooks'
import { listen } from '../server.ts'

/** Each has one request in flight. */
const CONNECTIONS = 64

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '/', 'http://localhost')
  const port = Number(searchParams.get('port'))
  const webhooks = Array.from({ length: Number(searchParams.get('webhooks')) }, () =>
    signedRequest(searchParams.get('secret') ?? ''),
  )
  const again = Number(searchParams.get('again') ?? Infinity)
  const sent = Promise.all(webhooks).then((signed) =>
    send(
      port,
      signed.flatMap((webhook, number) => (number % again === again - 1 ? [webhook, webhook] : [webhook])),
    ),
  )
  sent.then(
    () => response.end(),
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})
listen(server)

/** Resolves after the last response. */
async function send(port: number, requests: Buffer[]): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => connected(port)))
  await Promise.all(sockets.map((socket) => sendOneByOne(socket, requests)))
  for (const socket of sockets) socket.destroy()
}

async function connected(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

/** Sends the remaining requests one by one. Each must be answered with 204, which has no body. */
function sendOneByOne(socket: Socket, requests: Buffer[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const sendNext = () => {
      const request = requests.pop()
      if (request === undefined) return resolve()
      socket.write(request)
    }
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer += text
      if (!answer.endsWith('\r\n\r\n')) return
      if (!answer.startsWith('HTTP/1.1 204 ')) return reject(new Error(`answered with ${answer}`))
      answer = ''
      sendNext()
    })
    socket.on('error', reject).on('close', () => reject(new Error('the connection was closed')))
    sendNext()
  })
}

/** An ended run (§6.1), as on the wire. */
async function signedRequest(secrets: string): Promise<Buffer> {
  const body = Buffer.from(JSON.stringify(runEnded(randomUUID().replaceAll('-', ''))))
  const signature = await signWebhook({ body, secrets })
  const headers = { host: '127.0.0.1', ...signature, 'content-length': body.byteLength }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`POST /webhooks HTTP/1.1\r\n${lines.join('')}\r\n`), body])
}

function runEnded(run: string): unknown {
  const time = '2026-01-01T00:00:00.000Z'
  return {
    timestamp: time,
    type: 'task_run.status',
    data: {
      run_id: `trun_${run}`,
      interaction_id: `trun_${run}`,
      taskgroup_id: 'tgrp_0123456789abcdef0123456789abcdef',
      status: 'completed',
      is_active: false,
      warnings: null,
      error: null,
      processor: 'base',
      metadata: { customer: 'example', order: '2026-0001', purpose: 'due diligence of a supplier' },
      created_at: time,
      modified_at: time,
    },
  }
}
