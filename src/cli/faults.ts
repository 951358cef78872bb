import { InvalidArgumentError } from 'commander'
import type { Fault, FaultKind } from 'rivulet/service'

/** One kind of fault on the command line. */
interface FaultSyntax<Kind extends FaultKind> {
  /** Syntax of the fault on the command line. */
  readonly usage: string
  /** Description of the fault. */
  readonly about: string
  read(fields: Fields): Extract<Fault, { readonly kind: Kind }>
}

const SOMETIMES = '[times=N]'
const ON_PATH = `[path=PREFIX],${SOMETIMES}`
const IN_STREAM = `[after=N],${ON_PATH}`

const SYNTAX: { readonly [Kind in FaultKind]: FaultSyntax<Kind> } = {
  cut: {
    usage: `cut:[at=event|line|character|chunk],${IN_STREAM}`,
    about: "destroys a group stream's socket: after N events, or within the next one",
    read: (fields) => ({
      kind: 'cut',
      at: fields.oneOf('at', ['event', 'line', 'character', 'chunk']),
      ...inStream(fields),
    }),
  },
  stall: {
    usage: `stall:${IN_STREAM}`,
    about: "stops sending on a group's stream, and keeps it open",
    read: (fields) => ({ kind: 'stall', ...inStream(fields) }),
  },
  close: {
    usage: `close:${IN_STREAM}`,
    about: "closes a group's stream properly before all events are sent",
    read: (fields) => ({ kind: 'close', ...inStream(fields) }),
  },
  slow: {
    usage: `slow:[bytes=COUNT],[interval=MS],${IN_STREAM}`,
    about: 'sends the next event of a group COUNT bytes at a time, every MS of real time (default: 1 and 1)',
    read: (fields) => ({
      kind: 'slow',
      bytes: fields.optionalCount('bytes', 1),
      interval: fields.optionalCount('interval', 0),
      ...inStream(fields),
    }),
  },
  'repeat-events': {
    usage: `repeat-events:[count=N],${ON_PATH}`,
    about: 'repeats the last N events of a group when its stream is resumed (default: 1)',
    read: (fields) => ({
      kind: 'repeat-events',
      count: fields.optionalCount('count', 1),
      ...onPath(fields),
    }),
  },
  'deleted-group': {
    usage: `deleted-group:[group=ID],[after=N],${SOMETIMES}`,
    about: 'deletes a group after a stream of it has sent N events; times counts the 404s that follow',
    read: (fields) => ({
      kind: 'deleted-group',
      group: fields.optionalText('group'),
      after: fields.optionalCount('after', 0),
      ...sometimes(fields),
    }),
  },
  malformed: {
    usage: `malformed:${IN_STREAM}`,
    about: 'truncates the JSON of a response, or of the next event of a group',
    read: (fields) => ({ kind: 'malformed', ...inStream(fields) }),
  },
  gzip: {
    usage: `gzip:${ON_PATH}`,
    about: 'compresses a response or a stream that was not requested compressed',
    read: (fields) => ({ kind: 'gzip', ...onPath(fields) }),
  },
  'wrong-type': {
    usage: `wrong-type:${ON_PATH}`,
    about: 'answers 200 with an HTML page, as a proxy does',
    read: (fields) => ({ kind: 'wrong-type', ...onPath(fields) }),
  },
  truncated: {
    usage: `truncated:${ON_PATH}`,
    about: 'truncates a JSON response halfway, after the request has taken effect',
    read: (fields) => ({ kind: 'truncated', ...onPath(fields) }),
  },
  status: {
    usage: `status:status=CODE,[retryAfter=SECONDS],[retryAfterForm=seconds|date],${ON_PATH}`,
    about: 'answers with CODE, 400 to 599, and optionally with Retry-After',
    read: (fields) => ({
      kind: 'status',
      status: fields.count('status', 400, 599),
      retryAfter: fields.optionalCount('retryAfter', 0),
      retryAfterForm: fields.oneOf('retryAfterForm', ['seconds', 'date']),
      ...onPath(fields),
    }),
  },
  'invalid-cursor': {
    usage: `invalid-cursor:${ON_PATH}`,
    about: 'answers 422 to a cursor or a last_event_id, as if it had expired',
    read: (fields) => ({ kind: 'invalid-cursor', ...onPath(fields) }),
  },
  repeat: {
    usage: `repeat:${SOMETIMES}`,
    about: 'delivers a webhook twice',
    read: (fields) => ({ kind: 'repeat', ...sometimes(fields) }),
  },
  reorder: {
    usage: `reorder:${SOMETIMES}`,
    about: 'delays a webhook until the next one has been delivered',
    read: (fields) => ({ kind: 'reorder', ...sometimes(fields) }),
  },
  delay: {
    usage: `delay:by=MS,${SOMETIMES}`,
    about: "delays a webhook by MS of the service's clock",
    read: (fields) => ({ kind: 'delay', by: fields.count('by', 0), ...sometimes(fields) }),
  },
  lose: {
    usage: `lose:${SOMETIMES}`,
    about: 'loses a webhook, so that only a retry delivers it',
    read: (fields) => ({ kind: 'lose', ...sometimes(fields) }),
  },
  'lose-answer': {
    usage: `lose-answer:${SOMETIMES}`,
    about: "loses the receiver's response to a webhook, so that a retry delivers it again",
    read: (fields) => ({ kind: 'lose-answer', ...sometimes(fields) }),
  },
}

/** Every kind of fault, for the help. */
export const FAULTS_HELP = `
Faults, each KIND or KIND:name=value,name=value; options in brackets are optional:
  times=N      applies N times (default: always)
  path=PREFIX  applies only to requests whose path starts with PREFIX
  after=N      applies after N events of a stream's connection (default: immediately)

${Object.values(SYNTAX)
  .map(({ usage, about }) => `  ${usage}\n      ${about}`)
  .join('\n')}`

/** Parses a fault on the command line: `cut:after=3,times=2`. Throws an InvalidArgumentError. */
export function parseFault(text: string): Fault {
  const colon = text.indexOf(':')
  const kind = colon === -1 ? text : text.slice(0, colon)
  if (!isFaultKind(kind)) {
    throw new InvalidArgumentError(
      `There is no fault ${quoted(kind)}. The faults are ${Object.keys(SYNTAX).join(', ')}.`,
    )
  }
  const { usage, read } = SYNTAX[kind]
  const fields = new Fields(colon === -1 ? '' : text.slice(colon + 1), usage)
  const fault = read(fields)
  fields.finish()
  return fault
}

function isFaultKind(text: string): text is FaultKind {
  return Object.hasOwn(SYNTAX, text)
}

function sometimes(fields: Fields) {
  return { times: fields.optionalCount('times', 1) }
}

function onPath(fields: Fields) {
  return { path: fields.optionalText('path'), ...sometimes(fields) }
}

function inStream(fields: Fields) {
  return { after: fields.optionalCount('after', 0), ...onPath(fields) }
}

/** The `name=value` fields of a fault. Each is read once, and none may remain. */
class Fields {
  readonly #usage: string
  readonly #left = new Map<string, string>()

  constructor(text: string, usage: string) {
    this.#usage = usage
    for (const field of text === '' ? [] : text.split(',')) {
      const [, name, value] = /^(\w+)=(.+)$/.exec(field) ?? []
      if (name === undefined || value === undefined) this.#refuse(`${quoted(field)} is not name=value`)
      if (this.#left.has(name)) this.#refuse(`${name} is given twice`)
      this.#left.set(name, value)
    }
  }

  count(name: string, min: number, max?: number): number {
    return this.optionalCount(name, min, max) ?? this.#refuse(`${name} is missing`)
  }

  optionalCount(name: string, min: number, max = Number.MAX_SAFE_INTEGER): number | undefined {
    const text = this.optionalText(name)
    if (text === undefined) return undefined
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
    return this.#refuse(`${name} must be a whole number ${range}, got ${quoted(text)}`)
  }

  optionalText(name: string): string | undefined {
    const value = this.#left.get(name)
    this.#left.delete(name)
    return value
  }

  oneOf<Name extends string>(name: string, allowed: readonly Name[]): Name | undefined {
    const text = this.optionalText(name)
    if (text === undefined) return undefined
    const found = allowed.find((option) => option === text)
    return found ?? this.#refuse(`${name} must be one of ${allowed.join(', ')}, got ${quoted(text)}`)
  }

  finish(): void {
    const [name] = this.#left.keys()
    if (name !== undefined) this.#refuse(`it has no option ${quoted(name)}`)
  }

  #refuse(reason: string): never {
    throw new InvalidArgumentError(`${reason}. Its syntax is ${this.#usage}.`)
  }
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
