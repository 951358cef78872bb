/** The first release with a fix, in each line of SQLite's releases. */
const FIXED = [
  [3, 44, 6],
  [3, 50, 7],
  [3, 51, 3],
] as const
/** The first release with write-ahead logging, and with the bug. */
const FIRST = [3, 7, 0] as const

/**
 * Whether a version of SQLite (`3.51.2`, as in `process.versions.sqlite`) has the WAL-reset bug: if several connections write
 * and checkpoint one file, a committed transaction can be lost (sqlite.org/wal.html). Also true for text that is not a version.
 */
export function hasWalResetBug(version: string): boolean {
  const match = /^(\d+)\.(\d+)(?:\.(\d+))?/.exec(version)
  if (match === null) return true
  const [major, minor, patch] = [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)]
  const found = [major, minor, patch] as const
  if (isBefore(found, FIRST)) return false
  const fixed = FIXED.find((release) => release[0] === major && release[1] === minor) ?? FIXED.at(-1)
  return fixed === undefined || isBefore(found, fixed)
}

/** The error message for a database that such a version must not write. */
export function walResetBugMessage(version: string): string {
  return (
    `is not opened with this Node, whose SQLite ${version} can lose committed transactions ` +
    '(the WAL-reset bug, sqlite.org/wal.html): use Node 22.22.3 or later of 22, or 24.15 or later'
  )
}

type Release = readonly [major: number, minor: number, patch: number]

function isBefore(a: Release, b: Release): boolean {
  const difference = a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
  return difference < 0
}
