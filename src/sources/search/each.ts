import { isObservable, Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { iterate } from '../../../operators/iterate.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkBoolean, checkInteger, checkOptions } from '../../protocol/check.ts'
import { gateOf } from '../../protocol/gate.ts'
import type { Gate } from '../../protocol/gate.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { searchRequest } from '../../protocol/requests/search.ts'
import type { SearchRequest, SearchResponse } from '../../protocol/search.ts'
import { AuthenticationError, RequestError } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import { search } from './search.ts'

/** A query, or a whole request. */
type SearchQuery = string | SearchRequest

/** The queries of `search.each`. An iterator that can be used once serves one subscription. */
export type SearchQueries = Iterable<SearchQuery> | AsyncIterable<SearchQuery> | Observable<SearchQuery>

/** Options of `search.each`. */
export interface SearchEachOptions extends SourceOptions {
  /** How many searches are in progress or wait to be emitted, 1 to 100. Default 4. */
  readonly concurrency?: number
  /** Whether results are emitted in the order of the queries. Default true: a slow search delays those after it. */
  readonly ordered?: boolean
}

/** The result of one query: the response, or the error of a search that failed. */
export type SearchOutcome =
  | { readonly request: SearchRequest; readonly response: SearchResponse; readonly error?: undefined }
  | {
      readonly request: SearchRequest
      readonly error: RequestError | ArgumentError
      readonly response?: undefined
    }

const MAX_CONCURRENCY = 100

/**
 * Searches for each query, within the quota of searches. Emits one outcome for each, and completes after the last.
 *
 *     queries:  --a--b--c--|
 *               each(queries, { concurrency: 2 })
 *     result:   ------A--B-----C|
 *
 * A failed search is emitted with its error, after its retries, and does not affect the others. Errors only if the service
 * rejects the key, which all searches would meet, or if the queries themselves error. Reads no further query while
 * `concurrency` of them are in progress, or while the consumer pauses.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 *
 * const queries = ['solid state battery', 'sodium ion battery']
 * for await (const { request, response, error } of createClient().search.each(queries)) {
 *   if (error === undefined) console.log(request.search_queries, response.results.length)
 *   else console.warn(request.search_queries, error.message)
 * }
 * ```
 *
 * @throws ArgumentError at the call, also for an invalid query of an array.
 */
export function searchEach(
  context: Context,
  queries: SearchQueries,
  options: SearchEachOptions = {},
): Source<SearchOutcome> {
  checkOptions('search.each', options, ['concurrency', 'ordered', 'signal'])
  const { concurrency = 4, ordered = true, signal } = options
  checkInteger('concurrency', concurrency, 1, MAX_CONCURRENCY)
  checkBoolean('ordered', ordered)
  checkQueries(queries)
  const outcomes = new Observable<SearchOutcome>((subscriber) => {
    const searches = new Searches(context, iteratorOf(queries, concurrency), subscriber, {
      concurrency,
      ordered,
    })
    searches.begin()
  })
  return sourceOf(outcomes, signal)
}

function checkQueries(queries: SearchQueries): void {
  if (Array.isArray(queries)) {
    const given: readonly SearchQuery[] = queries
    for (const query of given) checkRequest(searchRequest, requestOf(query))
    return
  }
  // A string is an iterable of its characters.
  const isObject = typeof queries === 'object' && queries !== null
  if (isObject && (isObservable(queries) || Symbol.iterator in queries || Symbol.asyncIterator in queries))
    return
  throw new ArgumentError('queries', 'a list, an iterable or an Observable of queries', queries)
}

function requestOf(query: SearchQuery): SearchRequest {
  return typeof query === 'string' ? { search_queries: [query] } : query
}

type QueryIterator = Iterator<SearchQuery> | AsyncIterator<SearchQuery>

function iteratorOf(queries: SearchQueries, highWaterMark: number): QueryIterator {
  if (isObservable(queries)) return iterate(queries, { highWaterMark })
  return Symbol.asyncIterator in queries ? queries[Symbol.asyncIterator]() : queries[Symbol.iterator]()
}

/** A search whose outcome is not emitted yet. */
interface PendingSearch {
  outcome: SearchOutcome | undefined
}

/** The searches of one subscription. */
class Searches {
  readonly #context: Context
  readonly #queries: QueryIterator
  readonly #subscriber: Subscriber<SearchOutcome>
  readonly #gate: Gate | undefined
  readonly #concurrency: number
  readonly #ordered: boolean
  /** In the order of their emission. */
  readonly #pending: PendingSearch[] = []
  #isReading = false
  #hasEnded = false

  constructor(
    context: Context,
    queries: QueryIterator,
    subscriber: Subscriber<SearchOutcome>,
    { concurrency, ordered }: Required<Pick<SearchEachOptions, 'concurrency' | 'ordered'>>,
  ) {
    this.#context = context
    this.#queries = queries
    this.#subscriber = subscriber
    this.#gate = gateOf(subscriber)
    this.#concurrency = concurrency
    this.#ordered = ordered
  }

  begin(): void {
    this.#subscriber.add(() => this.#leaveQueries())
    this.#subscriber.add(this.#gate?.onChange((closed) => !closed && this.#emit()))
    this.#read()
  }

  /** Reads the next query, if there is room for it. */
  #read(): void {
    const isFull = this.#pending.length >= this.#concurrency || this.#gate?.closed === true
    if (this.#isReading || this.#hasEnded || isFull || this.#subscriber.closed) return
    this.#isReading = true
    this.#next().then(
      (result) => {
        this.#isReading = false
        if (this.#subscriber.closed) return
        if (result.done === true) this.#hasEnded = true
        else this.#search(requestOf(result.value))
        this.#emit()
      },
      (error: unknown) => {
        this.#hasEnded = true
        this.#subscriber.error(error)
      },
    )
  }

  async #next(): Promise<IteratorResult<SearchQuery>> {
    return this.#queries.next()
  }

  #search(request: SearchRequest): void {
    const pending: PendingSearch = { outcome: undefined }
    this.#pending.push(pending)
    try {
      this.#subscriber.add(
        search(this.#context, request).subscribe({
          next: (response) => this.#settle(pending, { request, response }),
          error: (error: unknown) => this.#failed(pending, request, error),
        }),
      )
    } catch (error) {
      this.#failed(pending, request, error)
    }
  }

  #failed(pending: PendingSearch, request: SearchRequest, error: unknown): void {
    const isOfQuery = error instanceof RequestError || error instanceof ArgumentError
    if (isOfQuery && !(error instanceof AuthenticationError)) this.#settle(pending, { request, error })
    else this.#subscriber.error(error)
  }

  #settle(pending: PendingSearch, outcome: SearchOutcome): void {
    pending.outcome = outcome
    if (!this.#ordered) {
      // After the outcomes that wait for the consumer.
      this.#pending.splice(this.#pending.indexOf(pending), 1)
      const place = this.#pending.findIndex((other) => other.outcome === undefined)
      this.#pending.splice(place === -1 ? this.#pending.length : place, 0, pending)
    }
    this.#emit()
  }

  /** Emits the outcomes whose turn it is, and continues to read. */
  #emit(): void {
    for (;;) {
      const outcome = this.#pending[0]?.outcome
      if (outcome === undefined || this.#gate?.closed === true || this.#subscriber.closed) break
      this.#pending.shift()
      this.#subscriber.next(outcome)
    }
    if (this.#hasEnded && this.#pending.length === 0) this.#subscriber.complete()
    else this.#read()
  }

  #leaveQueries(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    // The queries have no one to report an error to.
    Promise.resolve()
      .then(() => this.#queries.return?.())
      .catch(() => {})
  }
}
