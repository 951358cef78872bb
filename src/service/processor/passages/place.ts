import type { SourcePolicy } from '../../../protocol/task.ts'
import type { Corpus, CorpusDocument, DocumentSource } from '../../corpus/corpus.ts'
import { passagesOf } from '../../corpus/passages.ts'
import { allowsDocument } from '../../corpus/source-policy.ts'
import { stemsOf } from '../words/vocabulary.ts'
import { type Heading, manifestUnits, type PlacedUnit, readUnits } from './units.ts'
import { cutText } from '../../../protocol/cut-text.ts'

/** A passage of a document. */
export type SourcePassage = Pick<DocumentSource, 'url' | 'title'> &
  Partial<Pick<DocumentSource, 'kind'>> & {
    /** A verbatim part of the document's text. */
    readonly text: string
  }

/** A passage, read. */
export interface ReadPassage {
  readonly passage: SourcePassage
  readonly units: readonly ReadUnit[]
}

/** A unit with the stems of its words and of its headings. */
export interface ReadUnit {
  readonly unit: PlacedUnit
  readonly stems: ReadonlySet<string>
  readonly headingStems: ReadonlySet<string>
}

/** A thing, and its own documents. */
export interface Thing {
  readonly name: string
  /** The documents of its own folder, and of the folders below that do not belong to other things. */
  readonly documents: readonly DocumentSource[]
  /** The documents of its own folder only. */
  readonly root: readonly DocumentSource[]
}

/** The documents in which answers are looked for: an index, or a few passages. */
export interface Place {
  /** The passages that were already found for the question, if answers are not looked for in an index. */
  readonly given?: readonly SourcePassage[]
  /** The thing of a name; undefined if no document is about it. */
  thing(name: string): Thing | undefined
  /** The best passages for a query, of the documents about a name or of all. */
  passages(query: string, about: string | undefined, limit: number): readonly SourcePassage[]
  /** The passages of a document from its beginning, read, up to a number of characters. */
  read(source: DocumentSource, characters: number): readonly ReadPassage[]
  /** A passage, read, with the headings of its document above it. */
  within(passage: SourcePassage): ReadPassage
  /** The text of a document. */
  document(url: string): CorpusDocument | undefined
}

/** Maximum number of documents of a thing. */
const MAX_DOCUMENTS = 60
/** Maximum number of cached documents of a run. */
const MAX_CACHED = 24
/** Number of characters before a passage in which its headings are searched. */
const MAX_ABOVE = 40_000

/** An index to look for answers in, for one run: documents are read once. */
export function corpusPlace(corpus: Corpus, sourcePolicy: SourcePolicy | undefined): Place {
  const documents = new Map<string, CorpusDocument | undefined>()
  const readings = new Map<string, readonly ReadPassage[]>()
  const things = new Map<string, Thing | undefined>()

  function document(url: string): CorpusDocument | undefined {
    if (!documents.has(url)) {
      if (documents.size >= MAX_CACHED) documents.clear()
      documents.set(url, corpus.document(url))
    }
    return documents.get(url)
  }

  return {
    document,
    thing(name) {
      const key = name.toLowerCase()
      if (!things.has(key)) things.set(key, thingOf(corpus, name, sourcePolicy))
      return things.get(key)
    },
    passages: (query, about, limit) => corpus.passages({ queries: [query], about, sourcePolicy, limit }),
    read(source, characters) {
      const key = `${characters} ${source.url}`
      const known = readings.get(key)
      if (known !== undefined) return known
      const text = document(source.url)?.text ?? ''
      const reading = readText(source, cutText(text, characters))
      if (readings.size >= MAX_CACHED) readings.clear()
      readings.set(key, reading)
      return reading
    },
    within: (passage) => readPassage(passage, headingsAbove(document(passage.url)?.text ?? '', passage.text)),
  }
}

/** A few passages to look for answers in, such as those that a monitor has found. */
export function passagesPlace(passages: readonly SourcePassage[]): Place {
  return {
    given: passages,
    thing: () => undefined,
    passages: (_query, _about, limit) => passages.slice(0, limit),
    read: () => [],
    within: (passage) => readPassage(passage, []),
    document: () => undefined,
  }
}

function thingOf(corpus: Corpus, name: string, sourcePolicy: SourcePolicy | undefined): Thing | undefined {
  for (const { name: found, documents } of corpus.named(name, 3)) {
    const allowed = documents.filter((source) => allowsDocument(sourcePolicy, source)).slice(0, MAX_DOCUMENTS)
    const [first] = allowed
    if (first === undefined) continue
    const folder = folderOf(first.url)
    return { name: found, documents: allowed, root: allowed.filter(({ url }) => folderOf(url) === folder) }
  }
  return undefined
}

function folderOf(url: string): string {
  return url.slice(0, url.lastIndexOf('/') + 1)
}

function readText({ url, title, kind }: DocumentSource, text: string): ReadPassage[] {
  let above: readonly Heading[] = []
  return passagesOf(text, kind).map(({ start, end }) => {
    const passage = { url, title, kind, text: text.slice(start, end) }
    if (kind === 'manifest') return toRead(passage, manifestUnits(passage.text))
    const { units, headings } = readUnits(passage.text, above)
    above = headings
    return toRead(passage, units)
  })
}

function readPassage(passage: SourcePassage, above: readonly Heading[]): ReadPassage {
  return toRead(
    passage,
    passage.kind === 'manifest' ? manifestUnits(passage.text) : readUnits(passage.text, above).units,
  )
}

function toRead(passage: SourcePassage, units: readonly PlacedUnit[]): ReadPassage {
  const stems = new Map<string, ReadonlySet<string>>()
  const headingStems = (headings: readonly string[]) => {
    const text = headings.join(' ')
    const known = stems.get(text) ?? stemsOf(text)
    stems.set(text, known)
    return known
  }
  return {
    passage,
    units: units.map((unit) => ({
      unit,
      stems: stemsOf(unit.text),
      headingStems: headingStems([...unit.headings, ...(unit.columns ?? [])]),
    })),
  }
}

/** The headings of a document above a passage. */
function headingsAbove(text: string, passage: string): readonly Heading[] {
  const at = text.indexOf(passage)
  if (at <= 0) return []
  let open: Heading[] = []
  let isCode = false
  let last = ''
  for (const line of text.slice(Math.max(0, at - MAX_ABOVE), at).split('\n')) {
    if (/^\s{0,3}(?:```|~~~)/.test(line)) isCode = !isCode
    const [, marks = '', title = ''] = (isCode ? null : /^ {0,3}(#{1,6})\s+([^\n]{1,300})/.exec(line)) ?? []
    if (marks === '') {
      const underline = isCode ? null : /^(?:(=)=+|(-)-+)\s*$/.exec(line)
      if (underline !== null && /^\S.{0,200}$/.test(last)) {
        const level = underline[1] === undefined ? 2 : 1
        open = [...open.filter((outer) => outer.level < level), { level, text: last.trim() }]
      }
      last = line
      continue
    }
    open = [...open.filter(({ level }) => level < marks.length), { level: marks.length, text: title }]
  }
  return open
}
