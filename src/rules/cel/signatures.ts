/** The type of a value, as far as it is known before the evaluation. */
export type Kind = 'bool' | 'text' | 'number' | 'list' | 'map' | 'null' | 'time' | 'any'

interface Signature {
  /** How many arguments it can have. */
  readonly counts: readonly number[]
  readonly result: Kind
  /** Whether it reads the event, as it does if it is called without arguments. */
  readonly readsEvent?: (count: number) => boolean
}

const at = (result: Kind, ...counts: readonly number[]): Signature => ({ counts, result })
const ofEvent = (result: Kind, most: number, ...counts: readonly number[]): Signature => ({
  counts,
  result,
  readsEvent: (count) => count <= most,
})

/** A map, since an object has the names of its prototype, too. */
function named<T>(entries: Readonly<Record<string, T>>): ReadonlyMap<string, T> {
  return new Map(Object.entries(entries))
}

/** Functions: `text(x)`. */
export const FUNCTIONS: ReadonlyMap<string, Signature> = named({
  text: ofEvent('text', 0, 0, 1),
  hosts: ofEvent('number', 0, 0, 1),
  domains: ofEvent('list', 0, 0, 1),
  confidence: ofEvent('text', 1, 1, 2),
  citations: ofEvent('list', 1, 1, 2),
  quoted: ofEvent('bool', 1, 1, 2),
  age: ofEvent('number', 1, 0, 1),
  changed: ofEvent('bool', 1, 1),
  has: at('bool', 1),
  size: at('number', 1),
  type: at('any', 1),
  int: at('number', 1),
  uint: at('number', 1),
  double: at('number', 1),
  string: at('text', 1),
  bool: at('bool', 1),
  bytes: at('any', 1),
  dyn: at('any', 1),
  timestamp: at('time', 1),
  duration: at('time', 1),
})

const TIME_PART = at('number', 0, 1)

/** Methods: `x.contains('a')`. */
export const METHODS: ReadonlyMap<string, Signature> = named({
  size: at('number', 0),
  contains: at('bool', 1),
  startsWith: at('bool', 1),
  endsWith: at('bool', 1),
  matches: at('bool', 1),
  lowerAscii: at('text', 0),
  upperAscii: at('text', 0),
  trim: at('text', 0),
  indexOf: at('number', 1),
  lastIndexOf: at('number', 1),
  substring: at('text', 1, 2),
  replace: at('text', 2),
  split: at('list', 1),
  join: at('text', 0, 1),
  getFullYear: TIME_PART,
  getMonth: TIME_PART,
  getDate: TIME_PART,
  getDayOfMonth: TIME_PART,
  getDayOfWeek: TIME_PART,
  getDayOfYear: TIME_PART,
  getHours: TIME_PART,
  getMinutes: TIME_PART,
  getSeconds: TIME_PART,
  getMilliseconds: TIME_PART,
})

/** Macros: `x.exists(name, condition)`. */
export const MACROS: ReadonlyMap<string, Kind> = named({
  exists: 'bool',
  all: 'bool',
  exists_one: 'bool',
  existsOne: 'bool',
  map: 'list',
  filter: 'list',
})

/** Operators, as the syntax tree names them. */
export const OPERATORS: ReadonlyMap<string, Kind> = named({
  '_&&_': 'bool',
  '_||_': 'bool',
  '!_': 'bool',
  '_==_': 'bool',
  '_!=_': 'bool',
  '_<_': 'bool',
  '_<=_': 'bool',
  '_>_': 'bool',
  '_>=_': 'bool',
  '@in': 'bool',
  '_+_': 'any',
  '_-_': 'any',
  '_*_': 'number',
  '_/_': 'number',
  '_%_': 'number',
  '-_': 'number',
  '_[_]': 'any',
  '_?_:_': 'any',
  '@not_strictly_false': 'bool',
})

/** Names of types, for `type(x) == string`. */
export const TYPE_NAMES: ReadonlySet<string> = new Set([
  'int',
  'uint',
  'double',
  'bool',
  'string',
  'bytes',
  'list',
  'map',
  'null_type',
])
