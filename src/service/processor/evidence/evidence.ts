import { manifestLines } from '../../corpus/manifest.ts'
import { significantTerms } from '../../corpus/terms.ts'
import { type Asked, type AskedForm, type AskedTerm, readAsked } from '../question/asked.ts'
import { releaseSection } from './changes.ts'
import { describedThing } from '../question/described.ts'
import { factsOf } from './facts.ts'
import type { Evidence } from './judge.ts'
import type { Place, ReadPassage, SourcePassage, Thing } from '../passages/place.ts'
import { ACCEPTED } from './statement-weights.ts'
import { type RankedPassage, type Statement, statementsOf } from './statements.ts'
import type { Subject } from '../question/subject.ts'
import { stemsOf } from '../words/vocabulary.ts'

/** The result of a search for evidence. */
export interface Findings {
  readonly asked: Asked
  /** The search terms; empty if none were needed. */
  readonly query: string
  /** The name whose documents were searched; undefined for all documents. */
  readonly about: string | undefined
  readonly passages: number
  /** The URLs of the documents of these passages. */
  readonly sources: readonly string[]
  /** Best first. */
  readonly evidence: readonly Evidence[]
  /** The kind of thing that the evidence states: an attribute, the changes of a version, or the words of the question. */
  readonly by: 'attribute' | 'version' | 'words'
}

/** A question, or the question of a schema's field. */
export interface Inquiry {
  /** The name of the field, in words; empty for a question. */
  readonly name: string
  /** The question, or the description of the field. */
  readonly text: string
  /** Whether the input asks for nothing else, so that its words belong to the question. */
  readonly isOnly: boolean
  /** Whether the answer is a number. */
  readonly wantsNumber?: boolean
  /** Words for the kind of value that is wanted, such as `flag`. A statement with such a value need not have them. Default none. */
  readonly kindWords?: string
  /** Forms that the value has not, whatever the words of the question are. Default none. */
  readonly otherForms?: readonly AskedForm[]
}

/** The documents in which evidence is searched, and the target of the search. */
export interface EvidenceSearch {
  readonly place: Place
  readonly subject: Subject
  /** Maximum number of passages that a search returns. */
  readonly depth: number
  /** Receives all statements that were compared for an inquiry, accepted or not: the model is fitted with them. */
  readonly observe?: (searched: ComparedStatements) => void
}

/** The statements that were compared for an inquiry. */
export interface ComparedStatements {
  readonly asked: Asked
  /** The name whose documents were searched; undefined for all documents. */
  readonly about: string | undefined
  readonly statements: readonly Statement[]
}

/** A statement is nearly as good as the best one if it scores at least this fraction. */
const NEARLY = 0.85
/** The weight of a word that only the name of a field has. */
const NAME_WEIGHT = 0.4
/** Minimum weight of a field's own words that need little of the input's words. */
const ENOUGH = 2
/** Maximum number of sentences and lines that are returned. */
const MAX_EVIDENCE = 200
/** Number of characters of a document that are read for each passage of the depth. */
const CHARACTERS = 1_500
/** Minimum coverage of evidence in the subject's own documents, however likely: less is a word such as `number` alone. */
const MIN_COVERAGE = 0.2
/** Minimum coverage of evidence in passages that were found for the question. */
const GIVEN_COVERAGE = 0.62
/** Minimum coverage of evidence in other documents, and of a question without a subject. */
const OTHER_COVERAGE = 0.8

/**
 * Finds the sentences and lines that answer a question: in the documents of its subject if it has one, else in all. None if the
 * documents do not say.
 */
export function findEvidence(search: EvidenceSearch, inquiry: Inquiry): Findings {
  const { subject, place } = search
  if (place.given !== undefined) return searchGiven(place, place.given, subject, inquiry)
  let first: Findings | undefined
  for (const name of subject.names) {
    const thing = place.thing(name)
    if (thing === undefined) continue
    const found = searchThing(search, thing, readInquiry(subject, inquiry, namesOf(name, thing)), name)
    if (found.evidence.length > 0) return found
    first ??= found
  }
  const [main] = subject.names
  const described =
    main === undefined
      ? describedThing(
          place,
          inquiry.name === '' ? inquiry.text : `${subject.text} ${inquiry.text}`,
          search.depth,
        )
      : undefined
  if (described !== undefined) {
    const found = searchThing(search, described.thing, described.asked, described.thing.name)
    if (found.evidence.length > 0) return found
  }
  const asked = readInquiry(
    subject,
    { ...inquiry, isOnly: inquiry.isOnly || main === undefined },
    main === undefined ? [] : [main],
  )
  // An attribute that another document states is an attribute of that document.
  if (main !== undefined && asked.attribute !== undefined && first !== undefined) return first
  const found = searchAll(search, asked, main)
  return found.evidence.length > 0 ? found : (first ?? found)
}

/** Searches passages that were found for the question, so that only what the field asks must be in them. */
function searchGiven(
  place: Place,
  passages: readonly SourcePassage[],
  { text: input }: Subject,
  { name, text, wantsNumber = false }: Inquiry,
): Findings {
  const field = readAsked(`${name} ${text}`, [])
  const read = field.terms.length === 0 ? readAsked(input, []) : field
  const asked: Asked = wantsNumber && read.form === undefined ? { ...read, form: 'number' } : read
  const readings = passages.map((passage) => place.within(passage))
  const facts = asked.attribute === undefined ? [] : factsOf(asked.attribute, readings, [''])
  const given = { asked, query: '', about: undefined, readings }
  if (facts.length > 0) return findings({ ...given, evidence: facts, by: 'attribute' })
  const ranked = readings.map((reading, rank) => ({ reading, rank }))
  const evidence = statementsOf(asked, ranked, false).filter(({ coverage }) => coverage >= GIVEN_COVERAGE)
  return findings({ ...given, evidence, by: 'words' })
}

/** Reads the question. A field without its own words, such as `answer`, has the question of the input. */
function readInquiry(
  { text: input }: Subject,
  { name, text, isOnly, wantsNumber = false, kindWords = '', otherForms = [] }: Inquiry,
  names: readonly string[],
): Asked {
  const asked = withWeakName(readWith(`${name} ${text}`, input, isOnly, names), name, `${text} ${input}`)
  const form = otherForms.find((one) => one === asked.form) === undefined ? asked.form : undefined
  const isOpen = form === undefined || form === 'command'
  // Documents state a default in these words, or in none of them.
  const terms = withWeakKind(
    asked.terms,
    form === 'default' ? `${kindWords} initial value setting` : kindWords,
  )
  return { ...asked, terms, form: wantsNumber && isOpen ? 'number' : form }
}

/** A statement has a value of the kind instead of the word for it, unless nothing else is asked. */
function withWeakKind(terms: readonly AskedTerm[], kindWords: string): readonly AskedTerm[] {
  const kinds = stemsOf(kindWords)
  if (!terms.some(({ stem, weight }) => weight > 0.5 && !kinds.has(stem))) return terms
  return terms.map((term) => (kinds.has(term.stem) ? weakened(weakened(term)) : term))
}

/** The name of a field says less than its description. */
function withWeakName(asked: Asked, name: string, description: string): Asked {
  const described = stemsOf(description)
  if (!asked.terms.some((term) => term.weight > 0.5 && described.has(term.stem))) return asked
  const named = stemsOf(name)
  const isNameOnly = (root: string) => named.has(root) && !described.has(root)
  const terms = asked.terms.map((term) => (isNameOnly(term.stem) ? weakened(term) : term))
  return { ...asked, terms }
}

function weakened(term: AskedTerm): AskedTerm {
  return { ...term, weight: term.weight * NAME_WEIGHT }
}

function readWith(text: string, input: string, isOnly: boolean, names: readonly string[]): Asked {
  const field = readAsked(text, names)
  if (input.trim() === '') return field
  if (
    !field.terms.some(({ weight }) => weight > 0.5) &&
    (field.attribute === undefined || field.terms.length === 0)
  ) {
    return readAsked(`${input} ${text}`, names)
  }
  // The input names a thing that no document is about: its words must be found too.
  if (names.length === 0) return { ...readAsked(`${input} ${text}`, names), attribute: undefined }
  const whole = readAsked(`${input} ${text}`, names)
  if (field.attribute !== undefined) return inContext(field, whole, readAsked(input, names))
  if (isOnly) return whole
  // The words of the input help to find the field's value, but they may ask for another field.
  const own = new Set(field.terms.map(({ stem }) => stem))
  const says = field.terms.reduce((sum, { weight }) => sum + weight, 0)
  const weaker = (term: AskedTerm) => (says >= ENOUGH ? weakened(weakened(term)) : weakened(term))
  const around = whole.terms.filter(({ stem }) => !own.has(stem)).map(weaker)
  return {
    ...field,
    form: field.form ?? whole.form,
    release: field.release ?? whole.release,
    exact: field.exact.length > 0 ? field.exact : whole.exact,
    terms: [...field.terms, ...around],
  }
}

/** An attribute that the input asks for in some release, or the version of which it says more. */
function inContext(field: Asked, whole: Asked, input: Asked): Asked {
  const { exact, terms, attribute } = input
  const saysMore = attribute === undefined && terms.some(({ weight }) => weight === 1)
  const isOfChange = field.attribute?.name === 'version' && saysMore
  return isOfChange ? { ...whole, attribute: undefined, form: 'version' } : { ...field, exact }
}

/** Whether the manifest is of the release that a question asks about: an earlier one needs another runtime. */
function isOfRelease(place: Place, thing: Thing, { attribute, exact }: Asked): boolean {
  if (exact.length === 0 || attribute?.name !== 'runtime') return true
  const manifest = thing.root.find(({ kind }) => kind === 'manifest')
  const text = manifest === undefined ? '' : (place.document(manifest.url)?.text ?? '')
  const major = /(?<=^version: )\d+/m.exec(manifestLines(text).join('\n'))?.[0]
  return exact.every((one) => one.split('.', 1)[0] === major)
}

/** The names that a thing is called: with its scope and without. */
function namesOf(name: string, thing: Thing): string[] {
  const bare = (one: string) => one.replace(/^@[^/]+\//, '')
  const names = [name, thing.name, bare(name), bare(thing.name)]
  return [...new Set([...names, ...names.map((one) => one.replaceAll(/[-_]/g, ''))])]
}

function searchThing(search: EvidenceSearch, thing: Thing, asked: Asked, about: string): Findings {
  const { place, depth } = search
  const characters = depth * CHARACTERS
  if (asked.release !== undefined && (asked.asksForChanges || asked.form === 'date')) {
    const changes = searchRelease(place, thing, { ...asked, release: asked.release }, about)
    if (changes !== undefined) return changes
  }
  const readings = thing.root
    .filter(({ kind }) => kind !== 'changelog' && kind !== 'page')
    .flatMap((source) => place.read(source, source.kind === 'licence' ? 2_000 : characters))
  if (asked.attribute !== undefined && isOfRelease(place, thing, asked)) {
    const others = asked.attribute.name === 'runtime' ? searchOwn(search, thing, asked, about) : []
    const all = [...readings, ...others.filter(({ passage }) => passage.kind !== 'manifest')]
    const evidence = factsOf(asked.attribute, all, namesOf(about, thing))
    return findings({ asked, query: '', about, readings: all, evidence, by: 'attribute' })
  }
  const query = queryOf(asked)
  const found = searchOwn(search, thing, asked, about)
  const ranked: RankedPassage[] = []
  const seen = new Set<string>()
  const add = (reading: ReadPassage, rank: number) => {
    const key = `${reading.passage.url}\n${reading.passage.text}`
    if (seen.has(key)) return
    seen.add(key)
    ranked.push({ reading, rank })
  }
  for (const [index, reading] of readings.entries())
    if (reading.passage.kind !== 'licence') add(reading, Math.floor(index / 2))
  for (const [index, reading] of found.entries()) add(reading, index)
  const statements = statementsOf(asked, ranked, false)
  search.observe?.({ asked, about, statements })
  const evidence = oldestFirst(asked, accepted(statements))
  return findings({
    asked,
    query,
    about,
    readings: ranked.map(({ reading }) => reading),
    evidence,
    by: 'words',
  })
}

/** The statements that are likely enough, and the other items of a list whose item is the best of them. */
function accepted(statements: readonly Statement[]): readonly Statement[] {
  const [best] = statements
  if (best === undefined) return []
  const isOfList = ({ unit, passage }: Statement) =>
    unit.kind === 'item' && unit.heading === best.unit.heading && passage.url === best.passage.url
  const hasList = best.likelihood >= ACCEPTED && best.unit.kind === 'item' && best.unit.heading !== ''
  return statements.filter(
    (one) => (one.likelihood >= ACCEPTED && one.coverage >= MIN_COVERAGE) || (hasList && isOfList(one)),
  )
}

/** For the version that introduced something: among statements that are nearly as good, the one about the oldest version comes first. */
function oldestFirst({ form, text }: Asked, evidence: readonly Evidence[]): readonly Evidence[] {
  const [best] = evidence
  if (best === undefined || form !== 'version' || !/\b(?:since|as of|added|introduced?|first)\b/i.test(text))
    return evidence
  const near = evidence.filter(({ score, key }) => key !== undefined && score >= best.score * NEARLY)
  const rest = evidence.filter((one) => !near.includes(one))
  return [...near.toSorted((a, b) => compareVersions(a.key ?? '', b.key ?? '')), ...rest]
}

function compareVersions(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}

/** The best passages of a thing's own documents. */
function searchOwn(
  { place, depth }: EvidenceSearch,
  thing: Thing,
  asked: Asked,
  about: string,
): ReadPassage[] {
  const own = new Set(thing.documents.map(({ url }) => url))
  return place
    .passages(queryOf(asked), about, depth)
    .filter(({ url }) => own.has(url))
    .map((passage) => place.within(passage))
}

/** The section of the changelog about a version; undefined if it has none. */
function searchRelease(
  place: Place,
  thing: Thing,
  asked: Asked & { readonly release: string },
  about: string,
): Findings | undefined {
  for (const source of thing.documents) {
    if (source.kind !== 'changelog') continue
    const document = place.document(source.url)
    const section = document === undefined ? undefined : releaseSection(document, asked.release)
    if (section === undefined) continue
    const { readings, evidence, released } = section
    const found = { asked, query: '', about, readings, by: 'version' } as const
    if (asked.asksForChanges) return findings({ ...found, evidence })
    // The day of a release stands in its heading.
    if (released !== undefined) return findings({ ...found, evidence: [released] })
  }
  return undefined
}

/** With a name, the statements must name it. */
function searchAll(
  { place, subject, depth, observe }: EvidenceSearch,
  asked: Asked,
  name: string | undefined,
): Findings {
  const query = [name ?? '', queryOf(asked)].join(' ').trim()
  const passages = query === '' ? [] : place.passages(query, undefined, depth)
  const ranked = passages.map((passage, rank) => ({ reading: place.within(passage), rank }))
  const nameStems = name === undefined ? [] : [...stemsOf(name)]
  const statements = statementsOf(asked, ranked, subject.names.length === 0)
  observe?.({ asked, about: undefined, statements })
  const evidence = statements.filter(
    ({ coverage, likelihood, unit }) =>
      likelihood >= ACCEPTED &&
      coverage >= OTHER_COVERAGE &&
      nameStems.every((wanted) => stemsOf(unit.text).has(wanted)),
  )
  const readings = ranked.map(({ reading }) => reading)
  return findings({ asked, query, about: undefined, readings, evidence, by: 'words' })
}

function queryOf({ terms }: Asked): string {
  const all = [...terms.map(({ word }) => word), ...terms.flatMap(({ synonyms }) => [...synonyms])]
  return significantTerms(all.join(' ')).join(' ')
}

/** The findings among passages that were read. */
function findings({
  readings,
  evidence,
  ...found
}: Omit<Findings, 'passages' | 'sources'> & {
  readonly readings: readonly { readonly passage: SourcePassage }[]
}): Findings {
  return {
    ...found,
    passages: readings.length,
    sources: [...new Set(readings.map(({ passage }) => passage.url))],
    evidence: evidence.slice(0, MAX_EVIDENCE),
  }
}
