import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkText } from '../../protocol/check.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import type { ProcessContext, StreamEntry } from '../process-functions.ts'
import type { NameRange } from '../timers.ts'

/** The key of a row of a process: the name of the stage, the key of the stream, and what the stage keeps apart, such as the start of a window. */
export type RowKey = readonly [stage: string, key: string, part?: number | string]

/** A row that an entry is for. */
export interface Row<State> {
  readonly key: RowKey
  /** The names of the timers of the row that `take` reads, as `waiting`. Default: none. */
  readonly reads?: NameRange
  /** Does what the entry asks for. `state` is null for a row that has none. */
  take(state: State | null, context: ProcessContext<State>): void
}

/** A part of a definition that keeps state. `Result` is what `data` of its results is. */
export interface Stage<Result, State = unknown> {
  readonly name: string
  /** @internal */
  readonly types: readonly ResearchEventType[]
  /** The definitions whose results it reads. @internal */
  readonly after: readonly string[]
  /** What it does, as a text: the same text has the same state. @internal */
  readonly shape: string
  /** The table of the same definition whose rows it reads. @internal */
  readonly table?: Stage<unknown>
  /** Never there: it says the type of the results. @internal */
  readonly result?: () => Result
  /** @internal */
  rows(entry: StreamEntry, settings: StageSettings): readonly Row<State>[]
  /** @internal */
  timer(
    key: RowKey,
    state: State | null,
    due: number,
    context: ProcessContext<State>,
    name: string,
    data: unknown,
  ): void
}

/** The settings of a definition that its stages need. */
export interface StageSettings {
  readonly backfill: 'ignore' | 'place'
}

/** Maximum length of the name of a stage, in characters. */
const MAX_NAME = 100

/** @throws ArgumentError for a text that cannot be the name of a stage. */
export function checkStageName(name: unknown): void {
  checkText('name', name)
  if (name.length > MAX_NAME) throw new ArgumentError('name', `a text of up to ${MAX_NAME} characters`, name)
}
