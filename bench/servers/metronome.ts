/**
 * Groups whose streams of runs tell one event at a time: the first at once, each other when the process that started this
 * one sends it a message. `{events}x{bytes}` names a group. The run of each event says in its metadata when it was written,
 * in ns of `process.hrtime`, which is one clock for all processes of a machine.
 */
import { createServer } from 'node:http'
import { listen } from '../server.ts'
import { endedGroup, runFrame } from './run-frames.ts'

/** In each frame, where the time goes in behind it. */
const METADATA = '"metadata":{'

const server = createServer((request, response) => {
  const [, group = '', runs] =
    /^\/v1(?:beta)?\/tasks\/groups\/([^/?]+)(\/runs)?/.exec(request.url ?? '') ?? []
  const [events = 0, bytes = 0] = group.split('x').map(Number)
  if (runs === undefined) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(endedGroup(events)))
    return
  }

  // Ready before the first is asked for.
  const frames = Array.from({ length: events }, (_, at) => runFrame(group, at + 1, bytes).split(METADATA))
  let told = 0
  const tell = () => {
    const [before = '', after = ''] = frames[told] ?? []
    response.write(`${before}${METADATA}"written":"${process.hrtime.bigint()}",${after}`)
    told += 1
    if (told < events) return
    process.off('message', tell)
    response.end()
  }
  process.on('message', tell)
  response.once('close', () => process.off('message', tell))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  tell()
})
listen(server)
