const BYTE_ORDER_MARK = 0xfeff

/** Shared by all streams, since it keeps nothing from one call to the next. A mark at the beginning is the reader's to skip. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Decodes UTF-8 that comes in chunks, cut anywhere. Instead of a decoder of its own it keeps the few bytes of a character
 * that is not complete yet: of thousands of open streams most are quiet most of the time.
 */
export class Utf8Chunks {
  /** At most three bytes. */
  #incomplete: Uint8Array | undefined

  /** The characters that the bytes complete. */
  decode(bytes: Uint8Array): string {
    const whole = this.#incomplete === undefined ? bytes : joined(this.#incomplete, bytes)
    const end = whole.byteLength - incompleteTail(whole)
    // A copy, since the bytes are the sender's again afterwards. Not `slice`, which a Buffer answers with a view.
    this.#incomplete = end === whole.byteLength ? undefined : new Uint8Array(whole.subarray(end))
    return decoder.decode(this.#incomplete === undefined ? whole : whole.subarray(0, end))
  }

  /** Nothing more comes: what stands for a character that was cut off. */
  end(): string {
    const cut = this.#incomplete
    this.#incomplete = undefined
    return cut === undefined ? '' : decoder.decode(cut)
  }
}

/** The text without the byte order mark that it may begin with. */
export function withoutMark(text: string): string {
  return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text
}

/** How many bytes at the end begin a character whose rest is still to come. */
function incompleteTail(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.byteLength; back++) {
    const byte = bytes[bytes.byteLength - back] ?? 0
    if (byte < 0x80) return 0
    // The byte that a character begins with says how many there are.
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.byteLength + second.byteLength)
  bytes.set(first)
  bytes.set(second, first.byteLength)
  return bytes
}
