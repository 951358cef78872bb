import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip } from 'node:zlib'
import { WebError } from './web-error.ts'

/** The content codings that {@link readBody} decodes, for `accept-encoding`. */
export const ACCEPTED_CODINGS = 'gzip, br'

/**
 * Reads a response's body, decoded. Both the received and the decoded bytes are limited, so a compression bomb is cut while
 * it is decoded. Rejects when the body is longer, cut, or has another coding.
 */
export async function readBody(body: Readable, coding: string, maxBytes: number): Promise<Uint8Array> {
  const decoder = decoderOf(coding.trim().toLowerCase())
  const received = (source: AsyncIterable<Uint8Array>) => atMost(source, maxBytes)
  if (decoder === undefined) return await pipeline(body, received, concat)
  return await pipeline(body, received, decoder, received, concat)
}

function decoderOf(coding: string) {
  switch (coding) {
    case '':
    case 'identity':
      return undefined
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'br':
      return createBrotliDecompress()
    default:
      // A list of codings too: each further one multiplies the work for one byte.
      throw new WebError('fetch_error', `The response has the content coding ${coding.slice(0, 50)}`)
  }
}

async function* atMost(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of source) {
    size += chunk.byteLength
    if (size > maxBytes) throw tooLarge(maxBytes)
    yield chunk
  }
}

async function concat(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The error for a response that exceeds the limit. */
export function tooLarge(maxBytes: number): WebError {
  return new WebError('too_large', `The response is longer than ${maxBytes} bytes`)
}
