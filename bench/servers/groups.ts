/**
 * Groups whose runs have all ended, streamed as fast as they are taken. A group's name says what it holds:
 * `{events}x{bytes}`, and anything after another `x` tells groups of one size apart. What is written is made beforehand.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { announce } from '../server.ts'
import { endedGroup, runFrame } from './run-frames.ts'

const WRITE_BYTES = 64 * 1_024
const groups = new Map<string, readonly Buffer[]>()

const server = createServer((request, response) => {
  const [, group = '', runs] =
    /^\/v1(?:beta)?\/tasks\/groups\/([^/?]+)(\/runs)?/.exec(request.url ?? '') ?? []
  const [events = 0] = group.split('x').map(Number)
  if (runs === undefined) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(endedGroup(events)))
  } else {
    void stream(response, group)
  }
}).listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) announce(address.port)
})

async function stream(response: ServerResponse, group: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const left = new AbortController()
  response.once('close', () => left.abort())
  for (const chunk of chunksOf(group)) {
    if (left.signal.aborted) return
    // Rejects when the reader has left.
    if (!response.write(chunk)) await once(response, 'drain', left).catch(() => {})
  }
  response.end()
}

function chunksOf(group: string): readonly Buffer[] {
  let chunks = groups.get(group)
  if (chunks === undefined) {
    chunks = [...rendered(group)]
    groups.set(group, chunks)
  }
  return chunks
}

function* rendered(group: string): Generator<Buffer> {
  const [events = 0, bytes = 0] = group.split('x').map(Number)
  let frames = ''
  for (let id = 1; id <= events; id++) {
    frames += runFrame(group, id, bytes)
    if (frames.length < WRITE_BYTES && id < events) continue
    yield Buffer.from(frames)
    frames = ''
  }
}
