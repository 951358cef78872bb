import { readFile } from 'node:fs/promises'

/** A defect of the library that a soak has to find: a text of one of its files, and what stands in its place. */
export interface Mutant {
  /** The path from the project's folder, with a slash before it. */
  readonly file: string
  readonly text: string
  readonly replacement: string
}

/** Each breaks a promise of the log. */
export const MUTANTS = {
  /** A consumer saves an entry as acknowledged when it is read. */
  'cursor-saved-early': {
    file: '/src/log/consume/ack-window.ts',
    text: 'if (isKnown) this.#advance()',
    replacement: "if (isKnown || (slot.state = 'acknowledged')) this.#advance()",
  },
  /** The lock alone keeps two writers apart. */
  'fence-unchecked': {
    file: '/src/log/sqlite/claims.ts',
    text: 'throw new FencedError(this.#file.name, name)',
    replacement: '{}',
  },
  /** A worker on NATS records what the log has. */
  'duplicates-appended': {
    file: '/src/log/nats/entries/appending.ts',
    text: 'if (earlier !== undefined && isAtLeastAsComplete(earlier.completeness, entry.completeness)) continue',
    replacement: '',
  },
  /** A position of a state of the file that was lost is good. */
  'token-unchecked': {
    file: '/src/log/sqlite/position.ts',
    text: 'if (tokenOf(number) !== token)',
    replacement: 'if (false)',
  },
  /** The same on a NATS server. */
  'token-unchecked-on-nats': {
    file: '/src/log/nats/entries/positions.ts',
    text: 'if (found !== undefined && found !== token)',
    replacement: 'if (false)',
  },
  /** A log is copied without the positions that are beside effects. */
  'effects-left-behind': {
    file: '/src/log/copy/copied-effects.ts',
    text: "if (record.kind === 'name' && record.reader?.isCopy === true) inLog.set(record.name, record.reader)",
    replacement: '',
  },
  /** A wall clock that has jumped forward is believed at once. */
  'jump-believed': {
    file: '/src/log/store/log-clock.ts',
    text: 'if (ahead > TOLERANCE) {',
    replacement: 'if (ahead === Infinity) {',
  },
  /** A file is opened by any of its names. */
  'links-unchecked': {
    file: '/src/log/sqlite/file-system.ts',
    text: "if (statSync(path).nlink > 1) return 'has another name, since it is a hard link'",
    replacement: '',
  },
  /** The readers of a log on NATS are those that the server lists, which may leave some out. */
  'list-incomplete': {
    file: '/src/log/nats/journal/journals.ts',
    text: 'return inOrder(await this.#headsAt(await this.#subjects(this.#connection.names.readerJournals)))',
    replacement: 'return inOrder([...(await this.#listed(this.#connection.names.readerJournals)).values()])',
  },
  /** Retention of a log on NATS waits for no reader. */
  'readers-unseen': {
    file: '/src/log/nats/retention.ts',
    text: '.filter(({ holdsRetention }) => holdsRetention)',
    replacement: '.filter(() => false)',
  },
} satisfies Record<string, Mutant>

/** The name of a mutant. */
export type MutantName = keyof typeof MUTANTS

/** Throws an error for another name. */
export function mutantOf(name: string): MutantName {
  const isMutant = (given: string): given is MutantName => Object.hasOwn(MUTANTS, given)
  if (!isMutant(name)) throw new Error(`there is no mutant ${name}`)
  return name
}

/** Throws an error unless the library has the text that the mutant replaces. */
export async function checkMutant(name: MutantName): Promise<void> {
  const { file, text }: Mutant = MUTANTS[name]
  const source = await readFile(new URL(`../..${file}`, import.meta.url), 'utf8')
  if (!source.includes(text)) throw new Error(`${file} does not have the text of the mutant ${name}`)
}
