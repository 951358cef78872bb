/** Which member has each part; null if none has it. */
export type Assignment = readonly (string | null)[]

/**
 * Divides parts among members: each has as many as any other one, or one more. As few as possible move: a new member gets its share of
 * them, and those of a member that is gone are divided. Which ones move is decided by rendezvous hashing, so each process that
 * computes this gets the same.
 */
export function rebalanced(previous: Assignment, members: readonly string[]): Assignment {
  const loads = new Map(members.map((member) => [member, 0]))
  const seeds = new Map(members.map((member) => [member, hashOf(member)]))
  const score = (member: string, part: number) => mixed(seeds.get(member) ?? 0, part)
  const next = previous.map((owner) => (owner !== null && loads.has(owner) ? owner : null))
  const give = (part: number, member: string) => {
    const from = next[part] ?? null
    if (from !== null) loads.set(from, (loads.get(from) ?? 0) - 1)
    next[part] = member
    loads.set(member, (loads.get(member) ?? 0) + 1)
  }
  for (const owner of next) if (owner !== null) loads.set(owner, (loads.get(owner) ?? 0) + 1)
  for (const [part, owner] of next.entries()) {
    if (owner !== null) continue
    const least = Math.min(...loads.values())
    const member = highest(
      members.filter((one) => loads.get(one) === least),
      (one) => score(one, part),
    )
    if (member !== undefined) give(part, member)
  }
  for (;;) {
    const most = Math.max(...loads.values())
    const least = Math.min(...loads.values())
    if (!(most - least > 1)) return next
    const receiver = highest(
      members.filter((one) => loads.get(one) === least),
      (one) => score(one, 0),
    )
    const parts = next.flatMap((owner, part) => (owner !== null && loads.get(owner) === most ? [part] : []))
    if (receiver === undefined) return next
    const moved = highest(parts, (part) => score(receiver, part))
    if (moved === undefined) return next
    give(moved, receiver)
  }
}

function highest<T>(candidates: readonly T[], scoreOf: (candidate: T) => number): T | undefined {
  let best: T | undefined
  let bestScore = -1
  for (const candidate of candidates) {
    const own = scoreOf(candidate)
    if (own <= bestScore) continue
    best = candidate
    bestScore = own
  }
  return best
}

function hashOf(text: string): number {
  let hash = 0
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/** How much a member and a part belong together: the same wherever it is computed. From 0, 32 bits. */
function mixed(seed: number, part: number): number {
  // Mixed, so that members whose names differ in the last character alone do not have similar scores.
  let hash = seed ^ Math.imul(part + 1, 0x9e3779b1)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
