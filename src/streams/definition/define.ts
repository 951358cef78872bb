import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkInteger, checkOneOf, checkOptions, checkText } from '../../protocol/check.ts'
import type { EventOf, ResearchEvent, ResearchEventType } from '../../protocol/event.ts'
import { processSource } from '../../protocol/log-event.ts'
import { hashOf } from '../effects.ts'
import type { FunctionSettings, ProcessContext, ProcessFunctions, StreamEntry } from '../process-functions.ts'
import { RefusedEffect } from '../refused-effect.ts'
import type { Row, RowKey, Stage, StageSettings } from './stage.ts'
import { spanOf } from './windows.ts'
import type { TimeSpan } from './windows.ts'

/** Settings of {@link define}. */
interface DefinitionOptions {
  /** Version of what it computes, a positive integer. Raise it when results change, and start the process with `rebuild`. */
  readonly version: number
  /** How much later than its time an event may come, beyond what the log itself waits for. Default 0. */
  readonly lateness?: TimeSpan
  /** Events of a first walk into the past of a source: `ignore`, the default, or `place` by their time. */
  readonly backfill?: 'ignore' | 'place'
}

/** The types of the results of definitions. */
export const RESULT_TYPES = ['window.result', 'join.result'] as const

/** Whether it is the type of a result of a definition. */
export function isResultType(type: string): type is (typeof RESULT_TYPES)[number] {
  return type === 'window.result' || type === 'join.result'
}

/** A result of a definition. `Result` is what its `data` is. */
export type ResultEvent<Result> = Result extends unknown
  ? Omit<EventOf<'window.result'>, 'data' | 'type'> & {
      readonly type: Result extends { readonly values: unknown } ? 'window.result' : 'join.result'
      readonly data: Result
    }
  : never

/** A result of a definition as an entry of a log. */
export type ResultEntry<Result> = ResultEvent<Result> &
  Pick<StreamEntry, 'recorded' | 'revision' | 'backfill'>

/** A stage, for the dashboard and for documents. */
export interface StageDescription {
  readonly name: string
  /** The types of the events that it reads. */
  readonly types: readonly string[]
  /** The definitions whose results it reads. */
  readonly after: readonly string[]
  /** What it computes: its windows or its tables, and its values with their kinds. */
  readonly shape: unknown
}

/** Maximum number of stages. */
const MAX_STAGES = 100

/** What the stages of a definition ask for at one row. */
type RowsOfKey = readonly Row<unknown>[]

/** A computation over events, which runs over a log, over any stream of events, and over the past. Made by {@link define}. `Result` is what `data` of its results is. */
export class Definition<Result> {
  readonly name: string
  readonly version: number
  /** The source of its results. */
  readonly source: string
  /** The names of the definitions whose results it reads. */
  readonly after: readonly string[]
  /** A hash of what its stages compute: the same one has the same state. @internal */
  readonly shape: string
  /** What a process runs. @internal */
  readonly functions: ProcessFunctions<unknown, ResearchEventType, StreamEntry>
  /** The names of the timers that an entry reads. @internal */
  readonly reads: FunctionSettings<unknown, StreamEntry>['reads']
  readonly #stages: readonly Stage<Result>[]

  /** @internal */
  constructor(
    name: string,
    version: number,
    lateness: number,
    settings: StageSettings,
    stages: readonly Stage<Result>[],
  ) {
    this.name = name
    this.version = version
    this.source = processSource(name)
    this.after = [...new Set(stages.flatMap(({ after }) => after))]
    const { reads, ...functions } = functionsOf(stages, lateness, settings)
    this.functions = functions
    this.reads = reads
    this.#stages = stages
    this.shape = hashOf([lateness, settings.backfill, this.describe()])
  }

  /** What it computes, stage by stage. */
  describe(): readonly StageDescription[] {
    return this.#stages.map(({ name, types, after, shape }) => ({
      name,
      types,
      after,
      shape: JSON.parse(shape),
    }))
  }

  /** Whether an event is a result of this definition. */
  isResult<Event extends ResearchEvent>(event: Event): event is Event & ResultEvent<Result> {
    return isResultType(event.type) && event.source === this.source
  }
}

/**
 * Defines a computation over events: one value that runs durably over a log (`log.process`), in memory over any stream of events ({@link inMemory}), and over
 * the past.
 *
 * A definition is one process: its stages read the same events, each with its own keys and windows. To compute something from results, define a second one
 * that reads them: `from(definition)`.
 *
 * ```ts
 * import { memoryStore, openLog } from 'rivulet/log'
 * import { aggregate, count, define, from, keyBy, tumbling } from 'rivulet/streams'
 *
 * const perMonitor = define(
 *   'per-monitor',
 *   { version: 1, lateness: '30s' },
 *   from('monitor.completion', 'monitor.error').pipe(
 *     keyBy(({ source }) => source),
 *     aggregate('per-minute', tumbling('1m'), {
 *       runs: count(),
 *       errors: count(({ type }) => type === 'monitor.error'),
 *     }),
 *   ),
 * )
 * const log = await openLog(memoryStore())
 * log.process(perMonitor)
 * ```
 *
 * @param name The name of the process: part of the ids of its results.
 * @param stages 1 to 100 stages, whose names are different.
 * @throws ArgumentError for an unknown option or an invalid argument.
 */
export function define<const Results extends readonly [unknown, ...unknown[]]>(
  name: string,
  options: DefinitionOptions,
  ...stages: { readonly [N in keyof Results]: Stage<Results[N]> }
): Definition<Results[number]> {
  checkText('name', name)
  checkOptions('options', options ?? null, ['version', 'lateness', 'backfill'])
  const { version, lateness = 0, backfill = 'ignore' } = options
  checkInteger('version', version, 1)
  checkOneOf('backfill', backfill, ['ignore', 'place'])
  const all: readonly Stage<Results[number]>[] = stages
  if (all.length === 0 || all.length > MAX_STAGES)
    throw new ArgumentError('stages', `1 to ${MAX_STAGES} stages`, all.length)
  const names = new Set<string>()
  for (const [n, stage] of all.entries()) {
    const given: Partial<Stage<unknown>> = Object(stage)
    if (typeof given.rows !== 'function')
      throw new ArgumentError(`stages[${n}]`, 'a stage, such as `aggregate` makes', stage)
    if (names.has(stage.name))
      throw new ArgumentError(`stages[${n}]`, 'a stage whose name no other one has', stage.name)
    if (stage.after.includes(name))
      throw new ArgumentError(`stages[${n}]`, 'a stage that reads other results than its own', name)
    const { table } = stage
    if (table !== undefined && !stages.some((each: unknown) => each === table)) {
      const expected = `in a definition with its table ${JSON.stringify(table.name)}`
      throw new ArgumentError(`stages[${n}]`, expected, stage.name)
    }
    names.add(stage.name)
  }
  return new Definition(name, version, spanOf('lateness', lateness, 0), { backfill }, all)
}

/** The functions of a process that computes the stages. */
function functionsOf(
  stages: readonly Stage<unknown>[],
  lateness: number,
  settings: StageSettings,
): Definition<unknown>['functions'] & Pick<Definition<unknown>, 'reads'> {
  const byName = new Map(stages.map((stage) => [stage.name, stage]))
  // `event` is called once for each key of an entry.
  let last: { readonly entry: StreamEntry; readonly rows: Rows } | undefined
  const rowsOf = (entry: StreamEntry) => {
    if (last?.entry !== entry) {
      const reading = stages.filter(({ types }) => types.includes(entry.type))
      last = { entry, rows: new Rows(reading.flatMap((stage) => stage.rows(entry, settings))) }
    }
    return last.rows
  }
  return {
    types: [...new Set(stages.flatMap(({ types }) => types))],
    lateness,
    key: (entry) => rowsOf(entry).keys,
    init: () => null,
    event: (state, entry, context) => take(rowsOf(entry).of(context.key), state, context),
    // Each range by itself: all between two of them may be too many.
    reads: (entry, key) =>
      rowsOf(entry)
        .of(key)
        .flatMap(({ reads }) => reads ?? []),
    timer(state, due, context, name, data) {
      const key = rowKeyOf(context)
      byName.get(key[0])?.timer(key, state, due, context, name, data)
    },
  }
}

/** What the stages of a definition ask for at an entry, by row. */
class Rows {
  readonly #rows: readonly Row<unknown>[]
  readonly #keys: readonly string[]
  #byKey: ReadonlyMap<string, RowsOfKey> | undefined

  constructor(rows: readonly Row<unknown>[]) {
    this.#rows = rows
    this.#keys = rows.map(({ key }) => rowText(key))
  }

  /** The keys of the rows, some of them twice perhaps. */
  get keys(): readonly string[] {
    return this.#keys
  }

  of(key: string): RowsOfKey {
    if (this.#rows.length === 1) return this.#keys[0] === key ? this.#rows : []
    this.#byKey ??= Map.groupBy(this.#rows, (row) => rowText(row.key))
    return this.#byKey.get(key) ?? []
  }
}

/** What the stages ask for at one row, one after the other: a table that is read is also written perhaps. */
function take([first, ...others]: RowsOfKey, state: unknown, context: ProcessContext<unknown>): void {
  if (others.length === 0) return first?.take(state, context)
  let current = state
  const { key, complete, waiting, behindUntil } = context
  const shared: ProcessContext<unknown> = {
    key,
    complete,
    waiting,
    behindUntil,
    now: (clock) => context.now(clock),
    timer: (...given) => context.timer(...given),
    cancel: (name) => context.cancel(name),
    append: (event) => context.append(event),
    set(next) {
      context.set(next)
      current = next
    },
  }
  for (const row of [first, ...others]) row?.take(current, shared)
}

function rowText([stage, key, part]: RowKey): string {
  return JSON.stringify(part === undefined ? [stage, key] : [stage, key, part])
}

function rowKeyOf({ key }: Pick<ProcessContext<unknown>, 'key'>): RowKey {
  const parsed: unknown = JSON.parse(key)
  if (!Array.isArray(parsed)) throw new RefusedEffect('its state is not of this definition')
  const [stage, own, part]: readonly unknown[] = parsed
  return [String(stage), String(own), typeof part === 'number' || typeof part === 'string' ? part : '']
}
