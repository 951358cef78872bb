/** The one of the names that was probably meant: at most two letters differ, or a third of them. */
export function similarName(name: string, names: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.min(3, Math.floor(name.length / 3) + 1.5)
  for (const candidate of names) {
    if (Math.abs(candidate.length - name.length) > 3) continue
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** How many letters are to be inserted, deleted or replaced. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
