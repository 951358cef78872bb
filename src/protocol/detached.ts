/** The same text in memory of its own. A part that was cut out of a text keeps all of that text in memory. */
export function detached(part: string): string {
  return ` ${part}`.slice(1)
}
