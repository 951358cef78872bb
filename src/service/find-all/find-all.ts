import type { DatabaseSync } from 'node:sqlite'
import type { FindAllRequest, FindAllResult, FindAllRun } from '../../protocol/find-all.ts'
import { type Clock, realTimeOf } from '../clock.ts'
import type { Corpus } from '../corpus/corpus.ts'
import type { Memories } from '../memory/memories.ts'
import type { Processor } from '../processor/processor.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import type { Evaluator } from './evaluate.ts'
import { FindAllExecutor } from './executor.ts'
import { createRun, existingRun, findAllRoutes, type FindAllRoutesOptions } from './routes.ts'
import { FindAllStore } from './store.ts'

/** Settings of {@link createFindAll}. */
export interface FindAllOptions extends Pick<
  FindAllRoutesOptions,
  'checks' | 'credit' | 'openWriter' | 'startAt' | 'streamDuration'
> {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly corpus: Corpus
  readonly outbox: Outbox
  /** Keeps the runs that have ended. */
  readonly memories: Memories
  /** Executes enrichments. */
  readonly processor: Processor
  /** Judges the conditions of candidates. */
  readonly evaluator: Evaluator
  /** Called with errors, and with the `ref_id` of the response if there is one. */
  readonly onError: (error: unknown, ref_id?: string) => void
}

/** FindAll: its routes and the execution of its runs. */
export interface FindAll {
  readonly routes: ReturnType<typeof findAllRoutes>
  /** Creates a run from a valid request. Throws an HttpProblem if the run is not possible. */
  create(request: FindAllRequest): FindAllRun
  /** A run with its candidates so far. Throws an HttpProblem if there is no result. */
  result(findAllId: string): FindAllResult
  /** The states of a run, until it has ended or the signal is aborted. */
  states(findAllId: string, signal: AbortSignal): AsyncGenerator<FindAllRun>
  /** Starts to execute runs, beginning with the runs of an earlier process. */
  start(): void
  /** Ends streams and stops executing runs. */
  close(): void
}

export function createFindAll(options: FindAllOptions): FindAll {
  const { database, clock, corpus, outbox, processor, evaluator, credit, onError } = options
  const store = new FindAllStore(database, clock, outbox, options.memories)
  credit.reservedBy(() => store.active())
  const executor = new FindAllExecutor({ store, clock, corpus, processor, evaluator, onError })
  const streams = new Set<() => void>()
  const onWork = () => executor.wake()
  return {
    create: (request) => createRun({ store, credit, onWork }, request),
    result: (id) => ({ run: existingRun(store, id), candidates: JSON.parse(store.candidates(id)) }),
    async *states(id, signal) {
      for await (const _ of store.changes.changes(id, signal)) {
        const run = existingRun(store, id)
        yield run
        if (!run.status.is_active) return
      }
    },
    routes: findAllRoutes({
      store,
      corpus,
      credit,
      checks: options.checks,
      clock: realTimeOf(clock),
      onWork,
      onCancel: (id) => executor.cancel(id),
      openWriter: options.openWriter,
      startAt: options.startAt,
      streamDuration: options.streamDuration,
      onError,
      streams,
    }),
    start: () => executor.start(),
    close() {
      executor.stop()
      for (const end of streams) end()
    },
  }
}
