import type { Hmac } from './hmac.ts'

const ALGORITHM: HmacKeyGenParams = { name: 'HMAC', hash: 'SHA-256' }
/** The most cached keys. Few secrets are current at a time, but a function may return many over time. */
const MAX_KEYS = 64

const utf8 = new TextEncoder()
const NO_BYTES = new Uint8Array(0)

// Keys instead of promises: on some runtimes, a request cannot await a promise of another request.
const keys = new Map<string | Uint8Array, CryptoKey>()
let comparing: CryptoKey | undefined

async function keyOf(secret: string | Uint8Array): Promise<CryptoKey> {
  const known = keys.get(secret)
  if (known !== undefined) return known
  const key = await crypto.subtle.importKey('raw', joined(bytesOf(secret), NO_BYTES), ALGORITHM, false, [
    'sign',
  ])
  const [oldest] = keys.keys()
  if (keys.size >= MAX_KEYS && oldest !== undefined) keys.delete(oldest)
  keys.set(secret, key)
  return key
}

/** {@link Hmac} by WebCrypto. */
export const hmac: Hmac = {
  async sign(secret, prefix, body) {
    const key = await keyOf(secret)
    const signature = await crypto.subtle.sign('HMAC', key, joined(utf8.encode(prefix), bytesOf(body)))
    return btoa(String.fromCharCode(...new Uint8Array(signature)))
  },

  // Only `verify` compares in constant time. It compares signatures, so the expected text is signed with a random key.
  // Verifying the webhook itself would hash its whole body for each entry of the header.
  async equal(expected, claimed) {
    comparing ??= await crypto.subtle.generateKey(ALGORITHM, false, ['sign', 'verify'])
    const signature = await crypto.subtle.sign('HMAC', comparing, utf8.encode(expected))
    return crypto.subtle.verify('HMAC', comparing, signature, utf8.encode(claimed))
  },
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? utf8.encode(body) : body
}

function joined(prefix: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(prefix.byteLength + body.byteLength)
  bytes.set(prefix)
  bytes.set(body, prefix.byteLength)
  return bytes
}
