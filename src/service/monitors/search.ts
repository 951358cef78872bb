import { createHash } from 'node:crypto'
import type { MonitorProcessor } from '../../protocol/monitor.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { Corpus, CorpusQuery, Passage } from '../corpus/corpus.ts'
import { passagesOf } from '../corpus/passages.ts'
import { corpusPlace, type Place, type Thing } from '../processor/passages/place.ts'
import { changedBlocks } from './changed-blocks.ts'
import { hasTopic, type Interest, isAbout, isNaturalLanguage, readInterest, searchWords } from './interest.ts'
import type { EventStreamRequest } from './request.ts'
import { readableText, statementsOf } from './statements.ts'

/** Maximum number of matching passages that an execution compares, by processor. */
const MAX_PASSAGES: Readonly<Record<MonitorProcessor, number>> = { lite: 1_000, base: 10_000, core: 100_000 }
/** Maximum number of passages that an execution reads for a query in natural language. More would block the event loop. */
const MAX_READ = 10_000

/** The passages that a monitor compares, best first, and warnings for its clients. */
export interface MonitorFindings {
  readonly passages: readonly Passage[]
  readonly warnings: readonly Warning[]
  /** Why new statements of a passage are reported, as a sentence; undefined if they are not. */
  readonly reasonFor: (
    passage: Passage,
    statements: readonly string[],
    text: string | undefined,
  ) => string | undefined
}

type QueryFindings = Omit<MonitorFindings, 'warnings'>

/**
 * The passages that a monitor's query is about, in its allowed sources.
 *
 * A query of plain words finds the passages that have all of them. One in natural language names a subject, whose documents are
 * read, or topics and words, which most new statements that are reported must have.
 */
export function searchFor({ processor, settings }: EventStreamRequest, corpus: Corpus): MonitorFindings {
  const { query, advanced_settings } = settings
  const sourcePolicy = advanced_settings?.source_policy
  const limit = MAX_PASSAGES[processor]
  const search = (options: Omit<CorpusQuery, 'limit' | 'sourcePolicy'>, most: number) =>
    corpus.passages({ ...options, sourcePolicy, limit: most })
  const place = corpusPlace(corpus, sourcePolicy)
  const isPlain = !isNaturalLanguage(query)
  const interest = isPlain && !hasTopic(query) ? undefined : readInterest(query, place)

  const literal = interest === undefined || isPlain ? withAllWords(query, search, limit) : undefined
  const read =
    interest === undefined
      ? undefined
      : withInterest({ query, interest }, { place, search }, Math.min(limit, MAX_READ))
  const { passages, reasonFor } = joined(literal, read)
  const isCut =
    (literal?.passages.length ?? 0) >= limit || (read?.passages.length ?? 0) >= Math.min(limit, MAX_READ)
  return {
    passages,
    reasonFor,
    warnings: [
      ...(isCut ? [cutWarning(processor, Math.min(limit, interest === undefined ? limit : MAX_READ))] : []),
      ...(passages.length === 0 ? [NOTHING_FOUND] : []),
      ...(advanced_settings?.location === undefined ? [] : [NO_LOCATION]),
    ],
  }
}

type PassageSearch = (options: Omit<CorpusQuery, 'limit' | 'sourcePolicy'>, most: number) => Passage[]

function withAllWords(query: string, search: PassageSearch, limit: number): QueryFindings {
  const reason = `It has all words of "${query}".`
  return { passages: search({ queries: [query], match: 'all' }, limit), reasonFor: () => reason }
}

function withInterest(
  { query, interest }: { readonly query: string; readonly interest: Interest },
  { place, search }: { readonly place: Place; readonly search: PassageSearch },
  limit: number,
): QueryFindings {
  const { subjects, topics, terms } = interest
  const queries = searchWords(interest)
  const passages =
    subjects.length > 0
      ? subjects.flatMap((thing) => passagesAbout(thing, place)).slice(0, limit)
      : search({ queries }, limit).filter((passage) => mayMatch(passage))
  const about = [
    ...subjects.map(({ name }) => `a document of ${name}`),
    ...topics.map(({ name }) => `the topic ${name}`),
    ...(terms.length === 0 ? [] : [`the words ${terms.map(({ word }) => word).join(', ')}`]),
  ]
  const reason = `It is about "${query}": ${about.join(', ')}.`
  return {
    passages,
    reasonFor: (passage, statements, text) =>
      changedBlocks(passage, statements, text).some((block) => isAbout(interest, block)) ? reason : undefined,
  }

  /** The headings above the passage are not available, since documents are read only if they have changed. */
  function mayMatch(passage: Passage): boolean {
    return changedBlocks(passage, statementsOf(readableText(passage)), undefined).some((block) =>
      isAbout(interest, block),
    )
  }
}

/** All passages of a thing's documents. */
function passagesAbout({ documents }: Thing, place: Place): Passage[] {
  return documents.flatMap(({ url }) => {
    const document = place.document(url)
    if (document === undefined) return []
    return passagesOf(document.text, document.kind).map(({ start, end }): Passage => {
      const text = document.text.slice(start, end)
      const { title, publishDate, kind } = document
      return { url, title, publishDate, kind, text, hash: hashOf(url, text), score: 0 }
    })
  })
}

/** The results of both queries; the results for the words of a plain query come first. */
function joined(literal: QueryFindings | undefined, read: QueryFindings | undefined): QueryFindings {
  if (literal === undefined || read === undefined)
    return literal ?? read ?? { passages: [], reasonFor: () => undefined }
  const all = new Map([...literal.passages, ...read.passages].map((passage) => [passage.hash, passage]))
  const isLiteral = new Set(literal.passages.map(({ hash }) => hash))
  return {
    passages: [...all.values()],
    reasonFor: (passage, statements, text) =>
      (isLiteral.has(passage.hash) ? literal : read).reasonFor(passage, statements, text),
  }
}

const NOTHING_FOUND: Warning = {
  type: 'warning',
  message:
    'No document matches the query now, so only new documents can: name a package, a title or a folder of the documents, or fewer words',
}
const NO_LOCATION: Warning = {
  type: 'input_validation_warning',
  message: 'settings.advanced_settings.location has no effect: the documents belong to no country',
}

function cutWarning(processor: MonitorProcessor, limit: number): Warning {
  const message = `The query has more matches than the processor ${processor} compares: only the best ${limit} were compared`
  return { type: 'warning', message }
}

function hashOf(url: string, text: string): string {
  return createHash('sha256').update(`${url}\0${text}`).digest('hex')
}
