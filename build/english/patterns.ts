/** A way to say something that a reader with English as a second language has to read twice. */
export interface Pattern {
  /** Its name as a rule of textlint. */
  readonly id: string
  readonly pattern: RegExp
  /** What to write instead. */
  readonly advice: string
}

/** The patterns, each for a paragraph, a heading or a cell of a table, whose lines are joined. Each has few false findings. */
export const PATTERNS: readonly Pattern[] = [
  {
    id: 'opening',
    pattern: /^(?:Of|What of|Those|All that)\b/g,
    advice: 'Begin with the thing or the verb.',
  },
  {
    id: 'where-for-if',
    pattern:
      /(?<=^|[.:;] )Where (?!(?:is|are|does|do|can)\b)[^.;:?]*, (?=\w)|`?\b(?:[Uu]ndefined|[Nn]ull|[Ee]mpty|[Tt]rue|[Ff]alse|[Ee]rror|[Oo]nly|[Ff]ewer|[Rr]efused|[Rr]ejected|[Tt]hrows|[Rr]ejects|[Rr]esolves|@throws)`?(?: (?:with )?(?:an? )?(?:`\w+`|\{@?[^}]+\}))? where\b/g,
    advice: 'A condition begins with "if" or "when".',
  },
  {
    id: 'where-within',
    pattern:
      /\b(?:also|but|even|except|several) where\b|\b(?!(?:on|stays?|stands?|is|are|was|were|of|from|to|this|and|or|knows?|says?|sees?|shows?|looks?|places?|positions?|lines?|points?|begins?)\b)[\w-]+ where (?:it|they|there|none|one|that|this|some|any|an? [\w-]+) (?:is|are|can|could|has|have|may|needs?|finds?)\b/g,
    advice: 'A condition begins with "if" or "when".',
  },
  {
    id: 'is-none',
    pattern:
      /\b(?:[Tt]he|[Aa]n?|[Ii]ts|[Tt]heir|[Tt]his|[Tt]hat|[Ee]ach|[Nn]o) [\w`-]+ (?:is|was|are|were) none\b/g,
    advice: 'Say that it is missing.',
  },
  {
    id: 'as-good-as-none',
    pattern: /\bas good as (?:none|nothing|no|not|off|new|absent)\b/g,
    advice: 'Say what it is: off, empty, missing.',
  },
  {
    id: 'good-for-valid',
    pattern: /\b(?:is|are|be|stays?) good (?:once|twice|for|until|till)\b/g,
    advice: 'Write "works once" or "is valid for".',
  },
  {
    id: 'what-becomes-of',
    pattern: /\b[Ww]hat (?:becomes?|became|has become) of\b/g,
    advice: 'Write "what happens to", with the setting or the program as the subject.',
  },
  {
    id: 'said-by',
    pattern: /\b(?:is|are|was|were) (?:said|told|stated) by\b/g,
    advice: 'Make the one who says it the subject.',
  },
  {
    id: 'by-whatever',
    pattern: /\b(?:[Bb]y|[Ii]n|[Ff]rom|[Ww]ith|[Oo]f|[Tt]o|[Oo]n|[Aa]t) (?:whatever|whichever|whosever)\b/g,
    advice: 'Write "whichever ... does it", with a subject that acts.',
  },
  {
    id: 'of-before',
    pattern: /\b(?<!(?:one|those|that) )of (?:before|after) (?:an?|the|its|it|this|that|they)\b/g,
    advice: 'Write "from before" or "from after".',
  },
  {
    id: 'there-again',
    pattern: /\b(?:is|are) there again\b/g,
    advice: 'Say what happens: it recovers, it returns.',
  },
  {
    id: 'nothing-of',
    pattern: /\b[Nn]othing (?:\w+ )?of (?:it|them|this|that|these|those)\b/g,
    advice: 'Make the thing the subject: "... is not used".',
  },
  {
    id: 'no-and-no',
    pattern: /\b(?:is|are|was|were|has|have) no [\w-]+ and no\b/g,
    advice: 'Write "neither ... nor".',
  },
  {
    id: 'as-of-when',
    pattern: /\bas of (?:when|then)\b/g,
    advice: 'Write "the time of the last ...".',
  },
  {
    id: 'of-now',
    pattern: /\b(?:stands? by now|of now)\b/g,
    advice: 'Write "now" or "current".',
  },
  {
    id: 'without-end',
    pattern: /\bwithout (?:an )?end\b/g,
    advice: 'Write "forever", or what never stops.',
  },
  {
    id: 'go-by',
    pattern: /\b(?:go|goes|went) by (?:it|them|this|that|these|those)\b/g,
    advice: 'Write "uses it".',
  },
  {
    id: 'never-a-second',
    pattern: /\bnever (?:a second|a third|another one|a further one|two)\b/g,
    advice: 'Write "never creates another ...".',
  },
  {
    id: 'no-longer',
    pattern: /\b(?:any more|any longer)\b(?! than)/g,
    advice: 'Write "no longer".',
  },
  {
    id: 'old-word',
    pattern:
      /\b(?:[Tt]hereof|[Ww]hereof|[Tt]herein|[Ww]herein|[Tt]hereby|[Ww]hereby|[Hh]ereby|[Ww]hence|[Hh]itherto|[Hh]ence|[Aa]lbeit|[Nn]otwithstanding|[Ll]est|[Ww]hilst|[Aa]mongst|[Uu]pon|e\.g\.|i\.e\.|viz\.|cf\.)(?=\W|$)/g,
    advice: 'Write the plain word: for example, that is, so, while, among, on.',
  },
  {
    id: 'unit',
    pattern: /(?<![\w-])\d[\d,.]* ?(?:KB|Kb|kb|mb|Mb)\b/g,
    advice: 'Units are B, kB, MB, or KiB, MiB.',
  },
]

/** Maximum number of words of a sentence. */
export const MAX_WORDS = 35

/** The sentences of a text with more than {@link MAX_WORDS}, each with its offset. A colon or a semicolon ends a sentence too. */
export function longSentences(text: string): { readonly index: number; readonly words: number }[] {
  return [...text.matchAll(/(?:[^.:;!?|]|[.:;!?](?!\s|$))+/g)]
    .map(({ 0: sentence, index }) => ({
      index,
      words: sentence.split(/\s+/).filter((word) => /\w/.test(word)).length,
    }))
    .filter(({ words }) => words > MAX_WORDS)
}
