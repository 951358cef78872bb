/**
 * The embedded research service over a folder of documents.
 *
 * @module rivulet/service
 */
export { ManualClock, systemClock, type Clock } from './clock.ts'
export type { Corpus, CorpusDocument, CorpusQuery } from './corpus/corpus.ts'
export { DataFileError } from './database.ts'
export type { Fault, FaultKind, Faults } from './faults/faults.ts'
export { DocumentSourceError } from './live-documents/document-source-error.ts'
export type { Processor, ProcessorProgress, ProcessorResult, ProcessorTask } from './processor/processor.ts'
export {
  createResearchService,
  type ResearchService,
  type ResearchServiceOptions,
  type ServiceRecords,
} from './service.ts'
