import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { installedReadmes } from '../../../src/cli/installed.ts'

/** A description without the name of its package. */
interface Description {
  readonly subject: string
  readonly query: string
}

/** Words that many descriptions have, and that tell no package from another. */
const GENERIC = new Set(
  'a an and any api by class definitions faster fast for from i in implementation is it its javascript js lib library module node node.js of official on or package project simple small sdk that the this tiny to tool type types typescript use used utilities utility utils with written you your'.split(
    ' ',
  ),
)
/** The fewest words that are left of a description. */
const FEWEST = 2
/** A package with the code of another one for one platform. */
const PLATFORM = /(?:linux|darwin|win32|freebsd|android)-(?:x64|arm64|arm|ia32)/

/**
 * The queries of the installed packages, made without looking at results.
 *
 * Left out: packages without a README; packages for one platform; descriptions that are empty, have fewer than two words besides
 * generic ones once the name is removed, or are the name in words (`fast-deep-equal`); all but one of the packages with the same
 * description. Removed from a description: the name as a word of its own, and pictographs. Words of a longer name stay: "ANSI" of
 * `strip-ansi`, "core" of `@opentelemetry/core`.
 */
export async function describedPackages(): Promise<readonly Description[]> {
  const chosen = new Map<string, Description>()
  for (const { package: subject, path } of await installedReadmes()) {
    const { description } = JSON.parse(readFileSync(join(dirname(path), 'package.json'), 'utf8'))
    if (typeof description !== 'string' || PLATFORM.test(subject)) continue
    const query = withoutName(description, subject)
    const key = query.toLowerCase()
    const isName = key === subject.replaceAll('-', ' ')
    if (isName || wordsOf(query).length < FEWEST) continue
    // Of a family, the package with the shortest name, which the others are named after.
    const other = chosen.get(key)
    if (other === undefined || subject.length < other.subject.length) chosen.set(key, { subject, query })
  }
  return [...chosen.values()].toSorted((a, b) => (a.subject < b.subject ? -1 : 1))
}

/** A description without the name of its package. */
export function withoutName(description: string, name: string): string {
  const names = [name, name.replace(/\.?js$/, '')]
  return names
    .reduce((text, one) => {
      const escaped = one.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
      return text.replaceAll(
        new RegExp(String.raw`(?<![\w-])@?${escaped}(?:\.js)?(?:['’]s)?(?![\w-])`, 'gi'),
        '',
      )
    }, description)
    .replaceAll(/\p{Extended_Pictographic}|\p{Emoji_Modifier}|\uFE0F/gu, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/^[\s\-–:,.]+|[\s\-–:,]+$/g, '')
}

function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}.#+-]*/gu) ?? []
  return [...new Set(words.map((word) => word.replace(/[.-]+$/, '')))].filter((word) => !GENERIC.has(word))
}
