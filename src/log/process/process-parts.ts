/** Number of parts into which the keys of a shared process are divided. It never changes. */
export const PROCESS_PARTS = 8

/** The part of a key. It depends on nothing but the key. */
export function partOfKey(key: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return ((hash ^ (hash >>> 13)) >>> 0) % PROCESS_PARTS
}
