/**
 * Groups as `client.watch` reads them: both streams, whole and immediate, and the status. A group's name is `{events}x{bytes}`.
 * Its bytes are created at the first request, during the warm-up.
 */
import { createServer } from 'node:http'
import { listen } from '../server.ts'
import { endedGroup, runFrame, statusFrame } from './run-frames.ts'

const runs = new Map<string, Buffer>()

const server = createServer((request, response) => {
  const [, group = '', stream] =
    /^\/v1(?:beta)?\/tasks\/groups\/([^/?]+)(?:\/(events|runs))?/.exec(request.url ?? '') ?? []
  const [events = 0] = group.split('x').map(Number)
  const type = stream === undefined ? 'application/json' : 'text/event-stream'
  response.writeHead(200, { 'content-type': type })
  if (stream === 'runs') response.end(runsOf(group))
  else if (stream === 'events') response.end(statusFrame(events))
  else response.end(JSON.stringify(endedGroup(events)))
})
listen(server)

function runsOf(group: string): Buffer {
  let frames = runs.get(group)
  if (frames === undefined) {
    const [events = 0, bytes = 0] = group.split('x').map(Number)
    frames = Buffer.from(Array.from({ length: events }, (_, at) => runFrame(group, at + 1, bytes)).join(''))
    runs.set(group, frames)
  }
  return frames
}
