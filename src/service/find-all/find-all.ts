import type { DatabaseSync } from 'node:sqlite'
import { type Clock, realTimeOf } from '../clock.ts'
import type { Corpus } from '../corpus/corpus.ts'
import type { Processor } from '../processor/processor.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import { FindAllExecutor } from './executor.ts'
import { findAllRoutes, type FindAllRoutesOptions } from './routes.ts'
import { FindAllStore } from './store.ts'

/** Settings of {@link createFindAll}. */
export interface FindAllOptions extends Pick<
  FindAllRoutesOptions,
  'openWriter' | 'startAt' | 'streamDuration'
> {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly corpus: Corpus
  readonly outbox: Outbox
  /** Executes enrichments. */
  readonly processor: Processor
  /** Called with errors, and with the `ref_id` of the response if there is one. */
  readonly onError: (error: unknown, ref_id?: string) => void
}

/** FindAll: its routes and the execution of its runs. */
export interface FindAll {
  readonly routes: ReturnType<typeof findAllRoutes>
  /** Starts to execute runs, beginning with those of an earlier process. */
  start(): void
  /** Ends streams and stops executing runs. */
  close(): void
}

export function createFindAll(options: FindAllOptions): FindAll {
  const { database, clock, corpus, outbox, processor, onError } = options
  const store = new FindAllStore(database, clock, outbox)
  const executor = new FindAllExecutor({ store, clock, corpus, processor, onError })
  const streams = new Set<() => void>()
  return {
    routes: findAllRoutes({
      store,
      clock: realTimeOf(clock),
      onWork: () => executor.wake(),
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
