/** The first characters of a text, without the half of a surrogate pair at the end. */
export function cutText(text: string, length: number): string {
  const isHalf = length < text.length && /[\uD800-\uDBFF]/.test(text.charAt(length - 1))
  return text.slice(0, isHalf ? length - 1 : length)
}
