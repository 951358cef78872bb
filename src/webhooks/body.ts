import type { IncomingMessage } from 'node:http'
import { isObject } from '../protocol/event.ts'

/** Why a body could not be read. */
export type BodyFailure = 'body_too_large' | 'incomplete_body'

/**
 * The exact bytes of a request's body. They are counted as they come, since what `content-length` says need not be
 * true, and reading stops with the chunk that is too much.
 */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array | BodyFailure> {
  if (request.bodyUsed) {
    throw new TypeError('the body was read before: hand the request over ahead of whatever parses bodies')
  }
  if (request.body === null) return new Uint8Array()

  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of request.body) {
      size += chunk.byteLength
      if (size > maxBytes) return 'body_too_large'
      chunks.push(chunk)
    }
  } catch {
    return 'incomplete_body'
  }
  return joined(chunks, size)
}

/**
 * As {@link readBody} for a request of `node:http`, by its events, which take no promise for each chunk. After the chunk
 * that is too much, the rest is dropped as it comes.
 */
export function readIncoming(incoming: IncomingMessage, maxBytes: number): Promise<Uint8Array | BodyFailure> {
  return new Promise((resolve) => {
    if (incoming.destroyed) return resolve('incomplete_body')

    let chunks: Uint8Array[] = []
    let size = 0
    incoming.on('data', (chunk: Uint8Array) => {
      size += chunk.byteLength
      if (size <= maxBytes) {
        chunks.push(chunk)
      } else {
        chunks = []
        resolve('body_too_large')
      }
    })
    incoming.on('end', () => resolve(size <= maxBytes ? joined(chunks, size) : 'body_too_large'))
    // Comes after the end too, when nothing is left to resolve. Nobody who listens for it need listen for errors.
    incoming.on('close', () => resolve('incomplete_body'))
    // Whatever stands before may have paused it.
    incoming.resume()
  })
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = chunks
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, size)
}

/** A JSON object, and the text that it was parsed from. */
interface ParsedObject {
  readonly text: string
  readonly value: Readonly<Record<string, unknown>>
}

/** Keeps nothing between two bodies, not even after one that is malformed. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The JSON object that these bytes are, undefined where they are anything else. */
export function parseObject(bytes: Uint8Array): ParsedObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { text, value } : undefined
  } catch {
    return undefined
  }
}
