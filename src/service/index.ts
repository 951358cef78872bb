/**
 * The embedded research service over a folder of documents.
 *
 * @module rivulet/service
 */
export { ManualClock, systemClock, type Clock } from './clock.ts'
export type {
  Corpus,
  CorpusDocument,
  CorpusEntity,
  CorpusQuery,
  DocumentHit,
  DocumentSource,
  ExcerptBudget,
  Passage,
} from './corpus/corpus.ts'
export type { DocumentKind } from './corpus/document-kind.ts'
export { DataFileError } from './database.ts'
export type { DocumentFolder } from './corpus/sites.ts'
export type { DeletedGroup, Fault, FaultKind, Faults } from './faults/faults.ts'
export type { ServiceQuotas } from './http/service-quotas.ts'
export type { Turn } from './interactions/interactions.ts'
export type { ListenOptions } from './listen-options.ts'
export type { ModelOptions } from './model/model-server.ts'
export { SourceError } from './live-documents/source-error.ts'
export type { SourceErrorCode, SourceFailure, SourceState } from './live-documents/source-state.ts'
export type { MonitorRecord } from './monitors/event-log.ts'
export type { Processor, RunProgress, RunResult, RunTask } from './processor/processor.ts'
export {
  createResearchService,
  type ResearchService,
  type ResearchServiceOptions,
  type ServiceRecords,
} from './service.ts'
export type { RunRecord } from './tasks/task-store.ts'
