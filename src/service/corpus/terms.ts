/** Words that are too common to distinguish passages. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a about after all also am an and any are as at be been being but by can could d did do does doing done else for ' +
    'from had has have having he her here him his how i if in into is it its itself just let ll me more most my no ' +
    'nor not of off on only onto or other our out over own per please re s shall she should so some such t than that ' +
    'the their them then there these they this those through to too under until up us use used using ve very was we ' +
    'were what when where whether which while who whom whose why will with would you your'
  ).split(' '),
)

/** Maximum length of a term, in characters. */
const MAX_WORD_LENGTH = 64

/** The lowercase words of a text, in order: sequences of letters, marks and digits. */
export function words(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? []
}

/** The distinct words of a text without stop words, unless it only has stop words. */
export function significantTerms(text: string): string[] {
  const all = [...new Set(words(text))].filter((word) => word.length <= MAX_WORD_LENGTH)
  const significant = all.filter((word) => !STOP_WORDS.has(word))
  return significant.length > 0 ? significant : all
}

/** Whether a lowercase word is a stop word. */
export function isStopWord(word: string): boolean {
  return STOP_WORDS.has(word)
}
