import { basename } from 'node:path/posix'

/**
 * The purpose of a document: `readme` introduces its folder, `manifest` is a `package.json`, `changelog` lists changes, `licence` is a
 * licence text, and `page` is any other document.
 */
export type DocumentKind = 'readme' | 'manifest' | 'changelog' | 'licence' | 'page'

/** The end of a name: nothing, or a separator and anything else, such as an extension or a language. */
const REST = '(?:[._-].*)?$'
const README = new RegExp(`^readme${REST}`, 'i')
const CHANGELOG = new RegExp(`^(?:change-?logs?|changes|history|release-?notes|releases|news)${REST}`, 'i')
const LICENCE = new RegExp(`^(?:(?:un)?licen[cs]e|copying)${REST}`, 'i')
/** Files with the licences of other works, which do not state the licence of their own folder. */
const OTHERS_LICENCES = /third.?part|3rd.?part|vendor|bundled|dependenc/i

/** The kind of a document, by its file's name. The path has `/` on every platform. */
export function documentKind(path: string): DocumentKind {
  const name = basename(path)
  if (name.toLowerCase() === 'package.json') return 'manifest'
  if (README.test(name)) return 'readme'
  if (CHANGELOG.test(name)) return 'changelog'
  if (LICENCE.test(name) && !OTHERS_LICENCES.test(name)) return 'licence'
  return 'page'
}

const KINDS: readonly DocumentKind[] = ['readme', 'manifest', 'changelog', 'licence', 'page']

/** The kind that was stored as this value. */
export function toKind(stored: unknown): DocumentKind {
  return KINDS.find((kind) => kind === stored) ?? 'page'
}
