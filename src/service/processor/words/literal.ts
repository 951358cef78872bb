/** The source of a regular expression that matches exactly this text. */
export function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)
}
