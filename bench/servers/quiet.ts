/** Groups whose streams of runs send one event and then stay open and idle. */
import { createServer } from 'node:http'
import { listen } from '../server.ts'
import { runFrame } from './run-frames.ts'

const BYTES = 400

const server = createServer((request, response) => {
  const [, group = ''] = /^\/v1beta\/tasks\/groups\/([^/?]+)\/runs/.exec(request.url ?? '') ?? []
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(runFrame(group, 1, BYTES))
})
listen(server)
