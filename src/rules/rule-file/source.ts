import type { RuleProblem } from './problem.ts'

/** The path of a value in the content of a rule file. */
export type Path = readonly (string | number)[]

/** The content of a rule file, and the positions of its values. */
export interface Source {
  readonly file: string | null
  /** Plain objects, arrays, strings, numbers, booleans and null; anything for rules that are not from a file. */
  readonly content: unknown
  /** Whether a time span must have a unit: in a text, `10` could be seconds as well. */
  readonly needsUnits: boolean
  place(path: Path, at?: Within): Place
}

/** A position within a value: a property's name, or a character of a text. */
export type Within = { readonly name: string } | { readonly offset: number }

export type Place = Pick<RuleProblem, 'line' | 'column'>

/** Rules from a program: their problems have a path and no line. */
export function objectSource(content: unknown): Source {
  return { file: null, content, needsUnits: false, place: () => ({ line: null, column: null }) }
}

/** `rules[3].count.when`. */
export function pathText(path: Path): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[A-Za-z_]\w*$/.test(part)) text += text === '' ? part : `.${part}`
    else text += `[${JSON.stringify(part)}]`
  }
  return text
}
