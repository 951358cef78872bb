import { isObject } from '../protocol/event.ts'

/** Why a body could not be read. */
type BodyFailure = 'body_too_large' | 'incomplete_body'

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
  const [first] = chunks
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, size)
}

/** The JSON object that these bytes are, undefined where they are anything else. */
export function parseObject(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
