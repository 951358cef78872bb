import type { Attribute } from '../question/attributes.ts'
import {
  addresses,
  type FormValue,
  installations,
  licenceId,
  licences,
  personOf,
  rangeOf,
  runtimes,
} from '../passages/forms.ts'
import { type Evidence, definitionScore } from './judge.ts'
import { literal } from '../words/literal.ts'
import type { ReadPassage, ReadUnit } from '../passages/place.ts'
import { isAddress } from '../passages/units.ts'

/** Maximum number of values of an attribute. */
const MAX_FACTS = 12

/** The documents in which a statement can stand, and the score of each. */
const SCORES = { manifest: 10, readme: 8, licence: 7, page: 5, changelog: 4 } as const

/** Finds statements of an attribute in passages of a thing's own documents, best first. */
export function factsOf(
  { name, keys }: Attribute,
  passages: readonly ReadPassage[],
  names: readonly string[],
): Evidence[] {
  const read = READERS[name]
  const found: Evidence[] = []
  const ranks = new Map<string, number>()
  for (const { passage, units } of passages) {
    // The position of the passage within its document.
    const rank = ranks.get(passage.url) ?? 0
    ranks.set(passage.url, rank + 1)
    const base = SCORES[passage.kind ?? 'page']
    for (const [index, one] of units.entries()) {
      const { unit } = one
      const isManifest = passage.kind === 'manifest'
      const key = isManifest ? keys.find((wanted) => unit.text.startsWith(`${wanted}: `)) : undefined
      if (isManifest && key === undefined) continue
      const values =
        key === undefined
          ? read({ one, index, rank, kind: passage.kind ?? 'page', names })
          : stated(name, unit.text.slice(key.length + 2))
      for (const { weight = 0, ...value } of values) {
        const score = base + weight - rank * 0.01
        found.push({
          unit,
          passage,
          coverage: 1,
          direct: true,
          score,
          value: value.text,
          key: value.key,
          ...(value.number !== undefined && { number: value.number }),
        })
      }
    }
  }
  return found.toSorted((a, b) => b.score - a.score).slice(0, MAX_FACTS)
}

type Fact = Omit<FormValue, 'index'> & { readonly weight?: number }

function weighed(fact: Fact, weight: number): Fact {
  return { ...fact, weight }
}

interface FactReading {
  readonly one: ReadUnit
  readonly index: number
  readonly rank: number
  readonly kind: string
  readonly names: readonly string[]
}

/** The value of a key of a manifest. */
function stated(name: Attribute['name'], value: string): Fact[] {
  switch (name) {
    case 'licence':
      return /^(?:see |unlicensed$)/i.test(value)
        ? []
        : [{ text: value, key: licenceId(value) ?? value.toLowerCase() }]
    case 'runtime':
      return [rangeOf(value)]
    case 'author':
      return nonEmpty(personOf(value))
    case 'repository':
      return repositoryOf(value)
    default:
      return [{ text: value, key: value.toLowerCase() }]
  }
}

function nonEmpty(text: string): Fact[] {
  return text === '' ? [] : [{ text, key: text.toLowerCase() }]
}

/** An address, or `owner/name`. */
function repositoryOf(value: string): Fact[] {
  const [address] = addresses(value)
  const text = (address?.text ?? value).replace(/\.git$/, '')
  return [{ text, key: address?.key ?? text }]
}

const READERS: Readonly<Record<Attribute['name'], (reading: FactReading) => readonly Fact[]>> = {
  licence: readLicence,
  author: readAuthor,
  version: () => [],
  runtime: ({ one, kind }) => (kind === 'licence' ? [] : [...runtimes(one.unit.text)]),
  installation: readInstallation,
  homepage: readHomepage,
  repository: readRepository,
  keywords: () => [],
  name: () => [],
  definition: readDefinition,
}

/** Words which show that a licence belongs to another work. */
const OF_OTHERS =
  /\b(?:vendor(?:ed|s)?|third[- ]part(?:y|ies)|bundled?|bundles|includes?|including|contains|derived|based on|portions?|ported|adapted|borrowed|dependenc(?:y|ies)|originally|fonts?|icons?|logo|except)\b/i

function readLicence({ one: { unit }, kind, index, rank }: FactReading): readonly Fact[] {
  const isOwn = !OF_OTHERS.test(unit.text) && !unit.headings.some((heading) => OF_OTHERS.test(heading))
  if (kind === 'licence') {
    // The title of a licence stands at its beginning; below it, other works may be named.
    if (rank > 0 || index > 2) return []
    const [title] = licences(unit.text)
    return title === undefined ? textOfLicence(unit.text) : [title]
  }
  if (kind === 'changelog' || !isOwn || unit.text.length > 300) return []
  const isUnderHeading = /\blicen[cs]/i.test(unit.heading)
  if (!isUnderHeading && !/\blicen[cs]e/i.test(unit.text)) return []
  const values = licences(unit.text)
  // A text with several licences compares them, unless it offers a choice.
  if (new Set(values.map(({ key }) => key)).size > 1) return []
  return values.slice(0, 1).map((value) => weighed(value, isUnderHeading ? 0.5 : 0))
}

/** Sentences that only one licence has. */
const LICENCE_TEXTS: readonly (readonly [id: string, text: RegExp])[] = [
  ['MIT', /^Permission is hereby granted, free of charge, to any person obtaining/i],
  [
    'ISC',
    /^Permission to use, copy, modify, and\/or distribute this software for any purpose with or without fee/i,
  ],
  ['Unlicense', /^This is free and unencumbered software/i],
]

function textOfLicence(text: string): Fact[] {
  const id = LICENCE_TEXTS.find(([, beginning]) => beginning.test(text))?.[0]
  return id === undefined ? [] : [{ text: id, key: id }]
}

const COPYRIGHT =
  /(?:\bcopyright\b\s*(?:\(c\)|©|&copy;)?|©|\(c\)\s)\s*(?:\d{4}(?:\s*[-–,]\s*(?:\d{4}|present|now))*,?\s*)?(?:by\s+)?\[?(?<name>\p{Lu}[\p{L}.'’-]*(?:\s+[\p{L}.'’-]+){0,4})/iu

function readAuthor({ one: { unit }, kind, index, rank }: FactReading): readonly Fact[] {
  if (kind === 'licence') {
    if (rank > 0 || index > 4) return []
    return copyrightHolder(unit.text).map((fact) => weighed(fact, -2))
  }
  if (kind !== 'readme') return []
  if (/^(?:the )?(?:authors?|creators?|maintainers?|created by|made by)\b/i.test(unit.heading)) {
    const link = /^\W*\[(?<name>\p{Lu}[^\]]{2,40})\]/u.exec(unit.text)?.groups?.['name']
    const plain = /^(?<name>\p{Lu}[\p{L}.'’-]+(?:\s+\p{Lu}[\p{L}.'’-]*){1,3})(?=\s*(?:$|[<(,:@-]|\[))/u.exec(
      unit.text,
    )?.groups?.['name']
    return nonEmpty(link ?? plain ?? '')
  }
  const by =
    /\b(?:created|written|made|authored|developed) by \[?(?<name>\p{Lu}[\p{L}.'’-]+(?:\s+\p{Lu}[\p{L}.'’-]*){0,3})/u.exec(
      unit.text,
    )?.groups?.['name']
  if (by !== undefined && unit.text.length < 200) return nonEmpty(by).map((fact) => weighed(fact, -1))
  return /\blicen[cs]e/i.test(unit.heading) ? copyrightHolder(unit.text) : []
}

function copyrightHolder(text: string): Fact[] {
  const name = COPYRIGHT.exec(text)?.groups?.['name']?.trim()
  // "Copyright holders" and the disclaimer of a licence name no one.
  if (
    name === undefined ||
    /\b(?:holders?|notice|owner|licen[cs]e|contributors|authors?|disclaim)\b/i.test(name)
  )
    return []
  return nonEmpty(name)
}

function readInstallation({ one: { unit }, kind, names }: FactReading): readonly Fact[] {
  if (kind === 'changelog' || kind === 'licence') return []
  const named = new RegExp(
    String.raw`(?<![\w/@.-])(?:${names.map(literal).join('|')})(?:@[\w.^~-]+)?(?![\w/-])`,
    'i',
  )
  return installations(unit.text)
    .filter(({ text }) => named.test(text))
    .map((value) => {
      const isAlone = value.text.split(/\s+/).length === 3 ? 0.5 : 0
      const isNpm = value.text.startsWith('npm ') ? 0.5 : 0
      const isUnderHeading = unit.headings.some((heading) =>
        /install|getting started|setup|usage/i.test(heading),
      )
        ? 0.5
        : 0
      const isCode = unit.kind === 'code' ? 0.3 : 0
      return weighed(
        value,
        isAlone + isNpm + isUnderHeading + isCode - (/\s-(?:g|-global)\b/.test(value.text) ? 0.6 : 0),
      )
    })
}

/** A link that says that it is the website, or a line that is only an address. */
function readHomepage({ one: { unit }, kind }: FactReading): readonly Fact[] {
  if (kind !== 'readme') return []
  const link =
    /\[[^\]]*\b(?:web ?site|home ?page|documentation|docs)\b[^\]]*\]\((?<url>https?:[^\s)]+)/i.exec(unit.text)
      ?.groups?.['url']
  const isLine = isAddress(unit) && URL.canParse(unit.text) && !/\.\w{1,4}$/.test(new URL(unit.text).pathname)
  return addresses(link ?? (isLine ? unit.text : '')).map((value) => weighed(value, -2))
}

/** A link to a repository with the name of the thing. */
function readRepository({ one: { unit }, kind, names }: FactReading): readonly Fact[] {
  if (kind !== 'readme') return []
  const links = unit.text.matchAll(
    /https?:\/\/(?:github|gitlab|bitbucket)\.(?:com|org)\/[\w.-]+\/(?<name>[\w.-]+?)(?=\.git|[/#)\s"'>\]]|$)/g,
  )
  return [...links]
    .filter(({ groups }) => names.some((name) => name.toLowerCase() === groups?.['name']?.toLowerCase()))
    .map(([text]) => ({ text, key: text.toLowerCase(), weight: -2 }))
}

function readDefinition({ one: { unit }, kind, index, rank, names }: FactReading): readonly Fact[] {
  if (kind === 'changelog' || kind === 'licence' || rank > 5) return []
  const score = definitionScore(unit, names)
  if (score < 2) return []
  // The first sentence of a README usually defines its subject.
  return [{ text: unit.text, key: unit.text, weight: score - 4.5 - rank * 0.7 - index * 0.25 }]
}
