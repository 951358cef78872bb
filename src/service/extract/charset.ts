/** How many bytes of HTML are searched for the encoding, as browsers do. */
const PRESCAN_BYTES = 1_024

/**
 * Decodes a text by its byte order mark, the charset of its content type, or the `<meta>` of its HTML; else as UTF-8, or as
 * windows-1252 if it is not UTF-8. Bytes that the encoding does not have become U+FFFD.
 */
export function decodeText(bytes: Uint8Array, contentType: string, isHtml: boolean): string {
  const stated = markOf(bytes) ?? charsetOf(contentType) ?? (isHtml ? metaCharset(bytes) : undefined)
  const text = (stated && decoded(bytes, stated)) ?? utf8(bytes) ?? decoded(bytes, 'windows-1252') ?? ''
  return text.replaceAll('\0', '\uFFFD')
}

function markOf([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return undefined
}

function charsetOf(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1]
}

function metaCharset(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, PRESCAN_BYTES)).toString('latin1')
  const charset = /<meta\s[^>]*?charset\s*=\s*["']?([^\s"'/>;]+)/i.exec(head)?.[1]
  // A `<meta>` that can be read in ASCII is not UTF-16.
  return charset !== undefined && /^utf-?16/i.test(charset) ? 'utf-8' : charset
}

/** Undefined for an unknown encoding. */
function decoded(bytes: Uint8Array, label: string): string | undefined {
  try {
    return new TextDecoder(label).decode(bytes)
  } catch {
    return undefined
  }
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
