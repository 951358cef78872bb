import { isCelList, isCelMap, type CelEnv, type CelInput, type CelResult, type CelValue } from '@bufbuild/cel'
import { currentView } from './view.ts'
import { spend, VALUE } from './work.ts'

/** The environment whose functions count their work. */
export function counted(env: CelEnv): CelEnv {
  const { funcs } = env
  const find = (name: string) => {
    const found = funcs.find(name)
    if (found === undefined) return undefined
    const cost = COSTS.get(name) ?? everyCharacter
    const costOfResult = cost === itself ? itself : resultCost
    return Object.create(found, {
      call: {
        value(id: number, target: CelValue | undefined, args: CelValue[]): CelResult | undefined {
          spend(cost(target === undefined ? args : [target, ...args]))
          const result = found.call(id, target, args)
          // Spent here again, since the library makes a value of an error that a function throws.
          spend(costOfResult(result))
          return result
        },
      },
    })
  }
  return Object.defineProperty(env, 'funcs', { value: Object.create(funcs, { find: { value: find } }) })
}

type Cost = (values: readonly CelValue[]) => number

const lengthOf = (value: unknown): number =>
  typeof value === 'string' || value instanceof Uint8Array ? value.length : 0

const total = (values: readonly CelValue[]): number =>
  values.reduce<number>((sum, value) => sum + lengthOf(value), 0)

/** Functions of the library that read, compare or convert all of a text or of a list. */
const everyCharacter: Cost = (values) =>
  4 * total(values) +
  values.reduce<number>(
    (sum, value) => (isCelList(value) || isCelMap(value) ? sum + VALUE * value.size : sum),
    0,
  )

/** Functions that count their work themselves. */
const itself = () => 0

/** Functions whose work does not depend on their arguments. */
const constant: Cost = () => 0

const perCharacter =
  (units: number): Cost =>
  (values) =>
    units * total(values)

/** The library creates a formatter for each time zone that is named. */
const timePart: Cost = (values) => (values.length > 1 ? 300_000 : 2_000)

const COSTS: ReadonlyMap<string, Cost> = new Map<string, Cost>([
  ...['text', 'domains', 'hosts', 'confidence', 'citations', 'quoted', 'lowerAscii', 'upperAscii'].map(
    (name) => [name, itself] as const,
  ),
  ...['@bounded', '@append', '_==_', '_!=_', '@in', 'matches'].map((name) => [name, itself] as const),
  ...['age', '@list', 'dyn', 'type'].map((name) => [name, constant] as const),
  ...['contains', 'indexOf', 'split'].map((name) => [name, searchCost] as const),
  ['lastIndexOf', ([text, part]) => lengthOf(text) * (1 + lengthOf(part) / 8)],
  ['replace', (values) => searchCost(values) + 3 * lengthOf(values[0])],
  ['startsWith', ([, part]) => lengthOf(part)],
  ['endsWith', ([, part]) => lengthOf(part)],
  ['size', ([value]) => 2 * lengthOf(value)],
  ['trim', perCharacter(1)],
  ['substring', constant],
  ['join', ([list]) => (isCelList(list) ? 4 * VALUE * list.size : 0)],
  ['_<_', perCharacter(1)],
  ['_<=_', perCharacter(1)],
  ['_>_', perCharacter(1)],
  ['_>=_', perCharacter(1)],
  ['timestamp', (values) => 10_000 + 4 * total(values)],
  ['duration', (values) => 10_000 + 4 * total(values)],
  ...[
    'getFullYear',
    'getMonth',
    'getDate',
    'getDayOfMonth',
    'getDayOfWeek',
    'getDayOfYear',
    'getHours',
    'getMinutes',
    'getSeconds',
    'getMilliseconds',
  ].map((name) => [name, timePart] as const),
])

/** The cost of a function's result. */
function resultCost(result: CelInput | CelResult | undefined): number {
  if (typeof result === 'string') return result.length
  return isCelList(result) ? 3 * VALUE * Math.min(result.size, 10_000) : 0
}

/** Longest part that a search finds in linear time. */
const MAX_LINEAR = 250

/**
 * A search does more work at each character that equals the first one of the part. So a text that repeats one character takes a hundred
 * times as long as prose.
 */
function searchCost([text, part]: readonly CelValue[]): number {
  if (typeof text !== 'string' || typeof part !== 'string') return 0
  if (part.length < 2) return text.length / 8
  if (part.length > MAX_LINEAR) return (text.length * part.length) / 3
  const counts = currentView()?.once(byteCounts, text) ?? byteCounts(text)
  const first = part.charCodeAt(0)
  const hits = Math.max(counts[first & 0xff] ?? 0, counts[first >> 8] ?? 0)
  // The search for a longer part changes its method after a few such characters.
  const looks = part.length < 7 || hits === 0 ? hits : Math.max(...counts)
  return text.length / 8 + 6 * looks
}

/** How often each byte occurs in the characters of the text. */
function byteCounts(text: string): Uint32Array {
  spend(2 * text.length)
  const counts = new Uint32Array(256)
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    counts[unit & 0xff] = (counts[unit & 0xff] ?? 0) + 1
    if (unit > 0xff) counts[unit >> 8] = (counts[unit >> 8] ?? 0) + 1
  }
  return counts
}
