import type { ExtractRequest, ExtractResponse } from '../protocol/extract.ts'
import type { FindAllRequest, FindAllResult, FindAllRun } from '../protocol/find-all.ts'
import type { SearchRequest, SearchResponse } from '../protocol/search.ts'
import type { CreateRunRequest, TaskRun, TaskRunResult } from '../protocol/task.ts'

/** Options of a call of {@link Research}. */
export interface ResearchCallOptions {
  /** When aborted, the call rejects. */
  readonly signal?: AbortSignal
}

/** A step of a run: the `type` and `data` of the client's event. */
export interface ResearchStep {
  readonly type: string
  readonly data: unknown
}

/** What the tools call. A `ResearchClient` has all of it. */
export interface Research {
  search(request: SearchRequest, options?: ResearchCallOptions): PromiseLike<SearchResponse>
  extract(request: ExtractRequest, options?: ResearchCallOptions): PromiseLike<ExtractResponse>
  readonly tasks: {
    create(request: CreateRunRequest, options?: ResearchCallOptions): PromiseLike<TaskRun>
    get(runId: string, options?: ResearchCallOptions): PromiseLike<TaskRun>
    /** Resolves when the run has completed, and rejects when it has failed. */
    result(runId: string, options?: ResearchCallOptions): PromiseLike<TaskRunResult>
    /** Ends with the run. */
    events(runId: string, options?: ResearchCallOptions): AsyncIterable<ResearchStep>
  }
  readonly findAll: {
    create(request: FindAllRequest, options?: ResearchCallOptions): PromiseLike<FindAllRun>
    /** Resolves with what was found so far. */
    result(findAllId: string, options?: ResearchCallOptions): PromiseLike<FindAllResult>
    /** Ends with the run. */
    events(findAllId: string, options?: ResearchCallOptions): AsyncIterable<ResearchStep>
  }
}
