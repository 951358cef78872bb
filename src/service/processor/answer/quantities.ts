/** The dimension of a quantity. Each unit is a multiple of the first of its dimension. */
type Dimension = 'time' | 'size'

/** The units of each dimension: their names, and their factor. Months and years have no fixed length. */
const UNITS: readonly (readonly [names: string, dimension: Dimension, factor: number])[] = [
  ['ms msec msecs millisecond milliseconds millis', 'time', 1],
  ['s sec secs second seconds', 'time', 1_000],
  ['min mins minute minutes', 'time', 60_000],
  ['h hr hrs hour hours', 'time', 3_600_000],
  ['d day days', 'time', 86_400_000],
  ['week weeks', 'time', 604_800_000],
  ['b byte bytes', 'size', 1],
  // Software counts in powers of two, unless it says otherwise.
  ['k kb kib kilobyte kilobytes kibibyte kibibytes', 'size', 1_024],
  ['mb mib megabyte megabytes mebibyte mebibytes', 'size', 1_048_576],
  ['gb gib gigabyte gigabytes gibibyte gibibytes', 'size', 1_073_741_824],
]

/** A unit of measurement. */
export interface QuantityUnit {
  readonly dimension: Dimension
  readonly factor: number
}

const unitOf: ReadonlyMap<string, QuantityUnit> = new Map(
  UNITS.flatMap(([names, dimension, factor]) =>
    names.split(' ').map((name): [string, QuantityUnit] => [name, { dimension, factor }]),
  ),
)

/** Abbreviations that a text uses for other things too: `d`, `h`, `b` and `k` are no units of a field. */
const AMBIGUOUS = new Set(['b', 'd', 'h', 'k', 'day', 'min'])

/** The unit that the name or the description of a field asks for: `timeout_ms`, `in seconds`; undefined if it names none. */
export function wantedUnit(name: string, description: string): QuantityUnit | undefined {
  const inWords = /\bin (?<unit>\p{L}+)\b/iu.exec(description)?.groups?.['unit']
  const last = name.split(/\s+/).at(-1)
  const first = /^(?:number of )?(?<unit>\p{L}+)\b/iu.exec(description)?.groups?.['unit']
  for (const word of [inWords, last, first]) {
    const key = word?.toLowerCase()
    if (key !== undefined && !AMBIGUOUS.has(key) && unitOf.has(key)) return unitOf.get(key)
  }
  return undefined
}

/** A quantity in a text, in another unit. */
export interface Quantity {
  readonly value: number
  readonly index: number
}

/** Maximum length of a text in which quantities are searched, in characters. */
const MAX_TEXT = 4_000
const WORDS: Readonly<Record<string, number>> = {
  half: 0.5,
  a: 1,
  an: 1,
  one: 1,
  two: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  ten: 10,
}
const QUANTITY =
  /(?<![\p{L}\p{N}.,#/-])(?:(?<digits>\d[\d_,]*(?:\.\d+)?)\s*-?|(?<word>half an?|an?|one|two|three|four|five|six|ten)[\s-]+)(?<unit>\p{L}+)(?![\p{L}\p{N}])/giu

/** The quantities of a text that can be given in a unit, converted to it, in its order. */
export function quantitiesIn(text: string, { dimension, factor }: QuantityUnit): Quantity[] {
  return [...text.slice(0, MAX_TEXT).matchAll(QUANTITY)].flatMap(({ groups = {}, index }): Quantity[] => {
    const { digits, word = '', unit = '' } = groups
    const found = unitOf.get(unit.toLowerCase())
    const number =
      digits === undefined
        ? WORDS[word.toLowerCase().split(' ', 1).join('')]
        : Number(digits.replaceAll(/[_,]/g, ''))
    if (found?.dimension !== dimension || number === undefined) return []
    // Rounded to the precision of a decimal, so that 0.1 s are 100 ms.
    const value = Number(((number * found.factor) / factor).toPrecision(12))
    return Number.isFinite(value) ? [{ value, index }] : []
  })
}

/** The names of all units. */
export const UNIT_WORDS = UNITS.map(([names]) => names).join(' ')
