/** A bare server that answers every request with the bytes of a file, as an event stream: `replay.ts {file}`. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { announce } from '../server.ts'

const WRITE_BYTES = 64 * 1_024

const [file = ''] = process.argv.slice(2)
const bytes = readFileSync(file)

const server = createServer((_request, response) => {
  void replay(response)
}).listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) announce(address.port)
})

async function replay(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let from = 0; from < bytes.length; from += WRITE_BYTES) {
    if (!response.write(bytes.subarray(from, from + WRITE_BYTES))) await once(response, 'drain')
  }
  response.end()
}
