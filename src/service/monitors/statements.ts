/**
 * What a text says, one thing after the other: its lines, and the sentences within them. White space does not count.
 *
 * Passages end where a line or a sentence does, and fall together in another way when a document changes above them;
 * its statements stay the same. So they tell what is new, and what only stands somewhere else now.
 */
export function statementsOf(text: string): string[] {
  return text
    .split(/\n|(?<=[.!?]) /)
    .map((statement) => statement.replace(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '')
}
