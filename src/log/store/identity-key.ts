import { hash, hashIdentity } from '../../protocol/identity-hash.ts'
import type { EntryIdentity } from './new-entry.ts'

const words = new DataView(new ArrayBuffer(16))
const bytes = Buffer.from(words.buffer)

/** The hash of an identity as it is stored: 16 bytes, the same on every machine. They are reused for the next one. */
export function identityBytes(identity: EntryIdentity): DataView {
  hashIdentity(identity)
  for (let word = 0; word < 4; word++) words.setInt32(word * 4, hash[word] ?? 0, true)
  return words
}

/** The hash of an identity as text, of 22 characters. */
export function identityKey(identity: EntryIdentity): string {
  identityBytes(identity)
  return bytes.toString('base64url')
}
