/** American endings of `-our` words, by their stem: `colo` for `color` and `colour`. */
const OUR =
  'ard arm behavi cand clam col demean endeav enam fav ferv flav glam harb hon hum lab neighb od parl ranc rig rum sav savi splend succ tum val vap vig'
/** Stems of `-re` and `-er` words: `cent` for `centre` and `center`. */
const RE =
  'calib cent fib goit lit lust maneuv meag met kilomet millimet centimet nanomet ocht sab scept somb spect theat'
/** Verbs whose final `l` is doubled in British English only: `cancelled` and `canceled`. */
const DOUBLED_L =
  'cancel channel dial equal fuel initial label level marshal model panel parcel quarrel rival shovel signal spiral swivel total travel trial tunnel unravel'
/** Pairs without a rule, each with its other forms. */
const PAIRS =
  'licence/license licences/licenses defence/defense defences/defenses offence/offense offences/offenses pretence/pretense ' +
  'practise/practice practised/practiced practising/practicing catalogue/catalog catalogues/catalogs dialogue/dialog ' +
  'dialogues/dialogs analogue/analog grey/gray greys/grays greyscale/grayscale programme/program programmes/programs ' +
  'artefact/artifact artefacts/artifacts judgement/judgment acknowledgement/acknowledgment ageing/aging ' +
  'fulfil/fulfill enrol/enroll sceptical/skeptical mould/mold tyre/tire storey/story disc/disk discs/disks ' +
  'manoeuvre/maneuver aluminium/aluminum learnt/learned spelt/spelled focussed/focused focussing/focusing'

const alternation = (words: string) => words.split(' ').join('|')

/** Each rule swaps one ending, in both directions. */
const RULES: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [new RegExp(`^((?:dis|un|mis|multi)?(?:${alternation(OUR)}))our(.*)$`), '$1or$2'],
  [new RegExp(`^((?:dis|un|mis|multi)?(?:${alternation(OUR)}))or(.*)$`), '$1our$2'],
  [new RegExp(`^((?:epi)?(?:${alternation(RE)}))re(s?)$`), '$1er$2'],
  [new RegExp(`^((?:epi)?(?:${alternation(RE)}))er(s?)$`), '$1re$2'],
  [new RegExp(`^((?:${alternation(RE)}))red$`), '$1ered'],
  [new RegExp(`^((?:${alternation(RE)}))ered$`), '$1red'],
  [new RegExp(`^(${alternation(DOUBLED_L)})l(ed|ing|ers?|ation)$`), '$1$2'],
  [new RegExp(`^(${alternation(DOUBLED_L)})(ed|ing|ers?|ation)$`), '$1l$2'],
  // Most words with these endings have one spelling, such as `promise`: the other one is in no document.
  [/^(.{3,})is(e|es|ed|ers?|ing|ations?|able)$/, '$1iz$2'],
  [/^(.{3,})iz(e|es|ed|ers?|ing|ations?|able)$/, '$1is$2'],
  [/^(.{3,})ys(e|es|ed|ers?|ing)$/, '$1yz$2'],
  [/^(.{3,})yz(e|es|ed|ers?|ing)$/, '$1ys$2'],
]

const pairs: ReadonlyMap<string, string> = new Map(
  PAIRS.split(' ').flatMap((pair): [string, string][] => {
    const [british = '', american = ''] = pair.split('/')
    return [
      [british, american],
      [american, british],
    ]
  }),
)

/** The American spelling of a lowercase British word, or the British one of an American word; undefined if it has one spelling. */
export function otherSpelling(word: string): string | undefined {
  const other = pairs.get(word)
  if (other !== undefined) return other
  for (const [pattern, replacement] of RULES) {
    if (pattern.test(word)) return word.replace(pattern, replacement)
  }
  return undefined
}
