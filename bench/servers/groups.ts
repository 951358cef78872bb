/**
 * Groups with only ended runs, streamed with backpressure. A group's name is `{events}x{bytes}`, with anything after another `x`.
 * Its bytes are created at the first request, during the warm-up.
 */
import { createServer } from 'node:http'
import { listen } from '../server.ts'
import { WRITE_BYTES, writeStream } from './event-stream.ts'
import { endedGroup, runFrame } from './run-frames.ts'

const groups = new Map<string, readonly Buffer[]>()

const server = createServer((request, response) => {
  const [, group = '', runs] =
    /^\/v1(?:beta)?\/tasks\/groups\/([^/?]+)(\/runs)?/.exec(request.url ?? '') ?? []
  const [events = 0] = group.split('x').map(Number)
  if (runs === undefined) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(endedGroup(events)))
  } else {
    void writeStream(response, chunksOf(group))
  }
})
listen(server)

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
