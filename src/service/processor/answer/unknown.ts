/** The beginning of each answer in prose to a question that the documents do not answer. */
export const UNKNOWN = 'The documents do not say'

/** The answer in prose to a question that the documents do not answer. */
export function unknownAnswer(reason: string): string {
  return `${UNKNOWN}: ${reason}.`
}

/** Whether an answer in prose says that the documents do not answer the question. */
export function isUnknown(content: string): boolean {
  return content.startsWith(UNKNOWN)
}
