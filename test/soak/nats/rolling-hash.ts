/** The hash of an entry and of all before it: FNV-1a. */
export function rollingHash(
  before: number,
  { source, id, revision }: { readonly source: string; readonly id: string; readonly revision: number },
): number {
  let hash = before
  for (const byte of Buffer.from(`${source} ${id} ${revision}\n`)) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
