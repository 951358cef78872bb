import type { RetentionOptions } from 'rivulet/log'
import type { SchedulerLike } from 'rxjs'
import type { ScriptedService } from '../pipeline/service.ts'
import type { Consumption } from './consumption.ts'
import type { RecordedLog } from './recorded-log.ts'
import type { Trace } from './trace.ts'

/** The script of one handler call. */
export interface HandlerScript {
  /** The duration in ms; undefined is synchronous. */
  readonly takes: number | undefined
  /** How many calls fail. */
  readonly failures: number
}

/** The settings of the pipeline. */
export interface Setup {
  readonly pollInterval: number
  /** The delay from a failure to the next attempt, in ms. */
  readonly pause: number
  /** See `RecordOptions`. */
  readonly tick: number
  /** How long the log keeps its entries. Undefined for all of them. */
  readonly retention: RetentionOptions | undefined
  /** Whether what is recorded are Observables of lists. */
  readonly hasLists: boolean
  /** Whether the recorder and the consumers are in processes of their own. */
  readonly isApart: boolean
  /** Whether a second recorder waits for the streams of the first. */
  readonly hasStandby: boolean
}

/** What all processes of a simulation share. */
export interface World {
  readonly service: ScriptedService
  readonly scheduler: SchedulerLike
  readonly setup: Setup
  readonly trace: Trace
  readonly recorded: RecordedLog
  readonly consumptions: readonly Consumption[]
  readonly handlers: () => HandlerScript
  readonly random: () => number
}

/** What a process shares with its recording and its consumers. */
export interface Host {
  readonly world: World
  /** Whether it starts nothing any more. */
  readonly isEnding: boolean
  readonly isKilled: boolean
  /** Whether a commit of this reader is under way. */
  isCommitting(reader: string): boolean
  /** Reports an error that the script does not explain. */
  failed(error: unknown): void
}
