import { InvalidArgumentError } from 'commander'
import type { Fault, FaultKind } from 'rivulet/service'

/** One kind of fault on the command line. */
interface FaultSyntax<Kind extends FaultKind> {
  /** How it is written. */
  readonly usage: string
  /** What the service then does. */
  readonly about: string
  read(fields: Fields): Extract<Fault, { readonly kind: Kind }>
}

const SYNTAX: { readonly [Kind in FaultKind]: FaultSyntax<Kind> } = {
  cut: {
    usage: 'cut:after=N',
    about: "cuts a group's stream after N events, by destroying its socket",
    read: (fields) => ({ kind: 'cut', after: fields.count('after', 0), ...times(fields) }),
  },
  status: {
    usage: 'status:status=CODE[,retryAfter=SECONDS][,path=PREFIX]',
    about: 'answers with CODE, and Retry-After, requests whose path begins with PREFIX',
    read: (fields) => {
      const status = fields.count('status', 400, 599)
      const retryAfter = fields.optionalCount('retryAfter', 0)
      const path = fields.optionalText('path')
      return {
        kind: 'status',
        status,
        ...(retryAfter !== undefined && { retryAfter }),
        ...(path !== undefined && { path }),
        ...times(fields),
      }
    },
  },
  repeat: {
    usage: 'repeat',
    about: 'delivers a webhook twice',
    read: (fields) => ({ kind: 'repeat', ...times(fields) }),
  },
  reorder: {
    usage: 'reorder',
    about: 'holds a webhook back until the one after it has been delivered',
    read: (fields) => ({ kind: 'reorder', ...times(fields) }),
  },
}

/** Every kind of fault, for the help. */
export const FAULTS_HELP = `
Faults (each may have times=N: so often, and then no more; without it, always):
${Object.values(SYNTAX)
  .map(({ usage, about }) => `  ${usage}\n      ${about}`)
  .join('\n')}`

/**
 * Reads a fault as it is written on the command line: `cut:after=3,times=2`.
 *
 * Throws an InvalidArgumentError that says what is wrong with it.
 */
export function parseFault(text: string): Fault {
  const colon = text.indexOf(':')
  const kind = colon === -1 ? text : text.slice(0, colon)
  if (!isFaultKind(kind)) {
    throw new InvalidArgumentError(
      `There is no fault ${quoted(kind)}, only ${Object.keys(SYNTAX).join(', ')}.`,
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

function times(fields: Fields): { readonly times?: number } {
  const value = fields.optionalCount('times', 1)
  return value === undefined ? {} : { times: value }
}

/** The `name=value` fields of a fault; each is taken once, and none may be left. */
class Fields {
  readonly #usage: string
  readonly #left = new Map<string, string>()

  constructor(text: string, usage: string) {
    this.#usage = usage
    for (const field of text === '' ? [] : text.split(',')) {
      const [, name, value] = /^(\w+)=(.+)$/.exec(field) ?? []
      if (name === undefined || value === undefined) this.#refuse(`${quoted(field)} is not name=value`)
      if (this.#left.has(name)) this.#refuse(`${name} is there twice`)
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

  finish(): void {
    const [name] = this.#left.keys()
    if (name !== undefined) this.#refuse(`it has no ${quoted(name)}`)
  }

  #refuse(reason: string): never {
    throw new InvalidArgumentError(`${reason}. It is written ${this.#usage}[,times=N].`)
  }
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
