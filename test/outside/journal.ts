import { closeSync, openSync, readSync, writeSync } from 'node:fs'

/** What a process does with the log. Names are those of readers. */
export type Role =
  | { readonly kind: 'record' }
  /**
   * A consumer with its cursor in the log. `pause`: how long its handler takes, in ms; `hold`: how much longer for some entries, so that its
   * cursor stays behind what it acknowledges.
   */
  | {
      readonly kind: 'consume'
      readonly name: string
      readonly pause: number
      readonly hold: number
      readonly share: boolean
    }
  /**
   * A consumer with `exactlyOnce`. Its rows have the generation, which each rewind raises. While it fails, some entries become dead
   * letters; otherwise it asks for them again.
   */
  | {
      readonly kind: 'effects'
      readonly name: string
      readonly file: string
      readonly generation: number
      readonly isFailing: boolean
    }
  /** Counts the entries of each source, and has a timer for each. `ballast`: the size of each state, in bytes. */
  | { readonly kind: 'process'; readonly name: string; readonly ballast: number }
  /** Keeps its position in a file of its own. */
  | { readonly kind: 'read'; readonly name: string; readonly file: string }
  /** Asks for the numbers of the log over and over. */
  | { readonly kind: 'watch'; readonly name: string }
  /** Reads the whole log and the states of the process once. */
  | { readonly kind: 'audit'; readonly name: string; readonly process: string }

/** Whether the effect of this event fails while effects do. */
export function failsAtTimes(n: number): boolean {
  return n % 13 === 5
}

/** Whether the handler of a slow consumer takes long for this event. */
export function isHeld(n: number): boolean {
  return n % 40 === 7
}

/** What a process is started with. */
export interface ProcessSettings {
  /** A file, or `nats://host:port/NAME`. */
  readonly log: string
  readonly retention: { readonly maxAge?: number; readonly maxBytes?: number }
  readonly upstream: string
  readonly monitors: readonly string[]
  readonly roles: readonly Role[]
  readonly journal: string
}

/** An entry of an upstream event, as a role has seen it. */
export interface EntryLine {
  readonly kind: 'entry'
  readonly role: string
  readonly source: string
  /** Its number within the source. */
  readonly n: number
  readonly revision: number
  /** Unix ms, by the log. */
  readonly recorded: number
  /** When it was seen, in Unix ms, by a clock that is right. */
  readonly at: number
}

/** A line of a process's journal. */
export type Line =
  | EntryLine
  | { readonly kind: 'open' }
  /** Other entries of the log: its ticks, and gaps in it. */
  | { readonly kind: 'tick' | 'gap'; readonly role: string; readonly recorded: number; readonly at: number }
  | { readonly kind: 'timer'; readonly role: string; readonly source: string; readonly at: number }
  /** A reader with its position elsewhere has begun at the start of the log. */
  | { readonly kind: 'begun'; readonly role: string; readonly because: string | null }
  /** The readers that the numbers of the log have now, where they are not those of before. */
  | { readonly kind: 'readers'; readonly role: string; readonly names: readonly string[] }
  /** The state of a key. */
  | { readonly kind: 'state'; readonly source: string; readonly next: number; readonly faults: number }
  | { readonly kind: 'done' }
  /** The process has ended with an error. */
  | {
      readonly kind: 'error'
      readonly role: string
      readonly name: string
      readonly reason: string | null
      readonly text: string
    }

/** Opens a journal. Each line is one write, which a kill of the process does not undo. */
export function openJournal(file: string): (line: Line) => void {
  const descriptor = openSync(file, 'a')
  return (line) => void writeSync(descriptor, `${JSON.stringify(line)}\n`)
}

/** Reads a journal while it is written. */
export class JournalReader {
  readonly #file: string
  readonly #buffer = Buffer.alloc(1 << 20)
  readonly #lines: Line[] = []
  #read = 0
  #rest = ''

  constructor(file: string) {
    this.#file = file
  }

  get lines(): readonly Line[] {
    const descriptor = openSync(this.#file, 'a+')
    for (let length; (length = readSync(descriptor, this.#buffer, 0, this.#buffer.length, this.#read)) > 0;) {
      this.#read += length
      const lines = (this.#rest + this.#buffer.toString('latin1', 0, length)).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.#lines.push(JSON.parse(line))
    }
    closeSync(descriptor)
    return this.#lines
  }
}
