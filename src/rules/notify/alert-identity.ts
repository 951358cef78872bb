import { createHash } from 'node:crypto'

/** A text for the labels of an alert: the same for the same labels in any order. Labels may come from the web, so it is a hash that resists attacks. */
export function labelsHash(labels: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(sorted)).digest('base64url')
}
