/**
 * Groups whose streams of runs send one event at a time: the first immediately, each further one on a message of the parent process.
 * A group's name is `{events}x{bytes}`. The metadata of each run has the time of the write, in ns of `process.hrtime`, a clock that
 * all processes of a machine share.
 */
import { createServer } from 'node:http'
import { listen } from '../server.ts'
import { endedGroup, runFrame, statusFrame } from './run-frames.ts'

/** The marker in each frame after which the time is inserted. */
const METADATA = '"metadata":{'

const server = createServer((request, response) => {
  const [, group = '', stream] =
    /^\/v1(?:beta)?\/tasks\/groups\/([^/?]+)(?:\/(events|runs))?/.exec(request.url ?? '') ?? []
  const [events = 0, bytes = 0] = group.split('x').map(Number)
  if (stream === 'events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(statusFrame(events))
    return
  }
  if (stream === undefined) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(endedGroup(events)))
    return
  }

  // Created before the first request.
  const frames = Array.from({ length: events }, (_, at) => runFrame(group, at + 1, bytes).split(METADATA))
  let sent = 0
  const sendNext = () => {
    const [before = '', after = ''] = frames[sent] ?? []
    response.write(`${before}${METADATA}"written":"${process.hrtime.bigint()}",${after}`)
    sent += 1
    if (sent < events) return
    process.off('message', sendNext)
    response.end()
  }
  process.on('message', sendNext)
  response.once('close', () => process.off('message', sendNext))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  sendNext()
})
listen(server)
