import { extractRequest } from '../../protocol/requests/extract.ts'
import { findAllRequest } from '../../protocol/requests/find-all.ts'
import { searchRequest } from '../../protocol/requests/search.ts'
import { createRunRequest } from '../../protocol/requests/tasks.ts'
import type { Quota } from '../../protocol/quotas.ts'
import type { Research, ResearchCallOptions } from '../../tools/research.ts'
import type { Corpus } from '../corpus/corpus.ts'
import type { Extract } from '../extract/extract.ts'
import type { FindAll } from '../find-all/find-all.ts'
import { problemOf } from '../http/problem.ts'
import type { Quotas } from '../http/quota.ts'
import { bodySchema } from '../http/request-schema.ts'
import { checked, unprocessable } from '../http/validation.ts'
import { searchResponse } from '../search/search-routes.ts'
import type { Tasks } from '../tasks/tasks.ts'

/** Settings of {@link serviceResearch}. */
export interface ServiceResearchOptions {
  readonly corpus: Corpus
  readonly extract: Extract
  readonly tasks: Tasks
  readonly findAll: FindAll
  readonly quotas: Quotas
  /** Called with internal errors, and the `ref_id` that the client got. */
  readonly onError: (error: unknown, ref_id: string) => void
}

const searchBody = bodySchema(searchRequest)
const extractBody = bodySchema(extractRequest)
const runBody = bodySchema(createRunRequest)
const findAllBody = bodySchema(findAllRequest)

/** What the tools of the service's own tool server call, with the limits, quotas and errors of the endpoints. `key` is the caller's. */
export function serviceResearch(
  { corpus, extract, tasks, findAll, quotas, onError }: ServiceResearchOptions,
  key: string,
): Research {
  /** Does the work. Errors of the service are reported, and the caller gets their `ref_id` alone. */
  async function answer<T>(quota: Quota | undefined, work: () => T | Promise<T>): Promise<T> {
    try {
      if (quota !== undefined) quotas.take(quota, key)
      return await work()
    } catch (error) {
      throw problemOf(error, onError)
    }
  }

  return {
    search: (request) =>
      answer('search', () => searchResponse(corpus, checked(request, searchBody, unprocessable))),
    extract: (request, options) =>
      answer('extract', () =>
        extract.extract(checked(request, extractBody, unprocessable), signalOf(options)),
      ),
    tasks: {
      create: (request) =>
        answer('runs', () => tasks.single.create(checked(request, runBody, unprocessable), false)),
      get: (id) => answer(undefined, () => tasks.single.get(id)),
      async result(id, options) {
        const signal = signalOf(options)
        await tasks.single.ended(id, signal)
        signal.throwIfAborted()
        return await answer(undefined, () => tasks.single.result(id))
      },
      async *events(id, options) {
        for await (const data of tasks.single.progress(id, signalOf(options))) yield { type: data.type, data }
      },
    },
    findAll: {
      create: (request) =>
        answer('findAll', () => findAll.create(checked(request, findAllBody, unprocessable))),
      result: (id) => answer(undefined, () => findAll.result(id)),
      async *events(id, options) {
        for await (const data of findAll.states(id, signalOf(options))) yield { type: 'findall.status', data }
      },
    },
  }
}

function signalOf({ signal = new AbortController().signal }: ResearchCallOptions = {}): AbortSignal {
  return signal
}
