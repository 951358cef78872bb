/** A bare server that answers every request with the bytes of a file, as an event stream: `replay.ts {file}`. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { listen } from '../server.ts'
import { WRITE_BYTES, writeStream } from './event-stream.ts'

const [file = ''] = process.argv.slice(2)
const bytes = readFileSync(file)

listen(createServer((_request, response) => void writeStream(response, chunks())))

function* chunks(): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += WRITE_BYTES) yield bytes.subarray(from, from + WRITE_BYTES)
}
