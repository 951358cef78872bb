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
