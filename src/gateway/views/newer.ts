/** Whether a resource that was modified at this time is older than the known state. Unknown times are not older. */
export function isOlder(modified: unknown, than: unknown): boolean {
  if (typeof modified !== 'string' || typeof than !== 'string') return false
  return Date.parse(modified) < Date.parse(than)
}
