import type { Transform } from 'node:stream'
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'
import type { Zlib } from 'node:zlib'

/** Takes compressed bytes, gives plain ones. */
export type Decoder = Transform & Zlib

/** What undoes a `content-encoding`, or undefined where it is not known. `first` is the beginning of the body. */
export function openDecoder(coding: string, first: Uint8Array): Decoder | undefined {
  switch (coding.trim().toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'deflate':
      // It ought to be in the zlib format, whose first byte says so; some servers leave that away.
      return ((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw()
    case 'br':
      return createBrotliDecompress()
    case 'zstd':
      return createZstdDecompress()
    default:
      return undefined
  }
}
