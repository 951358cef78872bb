import type { Hmac } from './hmac.ts'

const ALGORITHM: HmacKeyGenParams = { name: 'HMAC', hash: 'SHA-256' }
/** Keys that are kept. Few secrets are current at once; a function may name very many in time. */
const MAX_KEYS = 64

const utf8 = new TextEncoder()

// The keys themselves and no promises of them: some runtimes let no request wait for what another one has begun.
const keys = new Map<string, CryptoKey>()
let comparing: CryptoKey | undefined

async function keyOf(secret: string): Promise<CryptoKey> {
  const known = keys.get(secret)
  if (known !== undefined) return known
  const key = await crypto.subtle.importKey('raw', utf8.encode(secret), ALGORITHM, false, ['sign'])
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

  // Only `verify` compares in constant time. It compares a signature, so one of the expected text is made for it, with a key
  // that nobody knows. Verifying the webhook itself would take its whole body again for each entry of the header.
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
