import { asyncScheduler, filter } from 'rxjs'
import type { OperatorFunction, SchedulerLike } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import {
  checkInteger,
  checkOneOf,
  checkOptionalFunctions,
  checkOptions,
  checkText,
} from '../protocol/check.ts'
import type { EventOf, ResearchEvent, ResearchEventType } from '../protocol/event.ts'
import { Definition } from './definition/define.ts'
import type { ResultEvent } from './definition/define.ts'
import { inTime } from './in-time.ts'
import { MemoryProcess } from './memory-process.ts'
import type { ProcessError } from './process-error.ts'
import { checkFunctions, FUNCTION_DEFAULTS, FUNCTION_OPTIONS } from './process-functions.ts'
import type { FunctionSettings, ProcessFunctions, StreamEntryOf, StreamInput } from './process-functions.ts'
import { RefusedEffect } from './refused-effect.ts'
import type { Representation } from './effects.ts'
import { asComputed, asInLog } from './representation.ts'

/** Settings of {@link inMemory}. */
export interface InMemoryOptions {
  /**
   * Maximum number of keys with a state, and of timers. An event of a further key fails as if a function had thrown at it. Default 100,000.
   */
  readonly maxKeys?: number
  /** Called for each event or timer that fails, with `onError: 'dead-letter'`, which requires it. With a definition, a failure stops it without this. An error that it throws errors the result. Default: none. */
  readonly onDeadLetter?: (error: ProcessError) => void
  /** Scheduler for timers and for the time at which events come. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

/** Settings of {@link inMemory} for a definition. */
interface DefinitionInMemoryOptions extends InMemoryOptions {
  /**
   * What moves event time: the `ticks` of a log, which come with its entries, or the `arrival` of events, as if nothing that happened before now were still
   * to come. Then results come by the clock, and an event that comes after the end of its window and `lateness` is dropped. Default `ticks`.
   */
  readonly watermark?: 'ticks' | 'arrival'
}

/**
 * Runs a process over a stream of events, in memory, and emits the events that it appends. `functions` may be those of `log.process`, with
 * the same result: the same entries in the same order give the same output with the same ids.
 *
 *     source:   --a--b-----c--|
 *               inMemory('counts', counts)
 *     result:   --1--2-----3--|
 *
 * An event is recorded when it comes. While the source is silent, the scheduler fires timers when they are due. Entries of a log bring their own
 * `recorded`: then the time moves with the entries alone, as over the log, and `log.tick` is one of them. An event that the process has appended itself is
 * skipped.
 *
 * State and timers are lost with the subscription: `log.process` keeps them. Completes and fails with the source, at once: timers that wait
 * then do not fire. Fails with a `ProcessError` if a function throws or asks for what a process cannot do, after the output before that. Events
 * that come while the subscriber takes an output are processed after it. Unsubscribing ends the source and the timers.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 * import { inMemory } from 'rivulet/streams'
 * import type { ProcessFunctions } from 'rivulet/streams'
 *
 * declare module 'rivulet' {
 *   interface ResearchEventData {
 *     'app.silent': { readonly since: string }
 *   }
 * }
 *
 * const silent: ProcessFunctions<{ last: string }> = {
 *   key: (entry) => entry.source,
 *   init: () => ({ last: '' }),
 *   event: (_, { received }, context) => {
 *     context.set({ last: received })
 *     context.timer('silence', context.now() + 3_600_000)
 *   },
 *   timer: ({ last }, _, context) => context.append({ type: 'app.silent', data: { since: last } }),
 * }
 * const client = createClient({ apiKey: 'key' })
 * client.monitors.follow('mon_1').pipe(inMemory('silent', silent)).subscribe(console.log)
 * ```
 *
 * @param name The name of the process: part of the ids of its events.
 * @throws ArgumentError at the call, for an unknown option or an invalid argument.
 */
export function inMemory<State, Type extends ResearchEventType = ResearchEventType>(
  name: string,
  functions: ProcessFunctions<State, Type>,
  options?: InMemoryOptions,
): OperatorFunction<StreamInput, ResearchEvent>
/**
 * Computes a definition over a stream of events, in memory, and emits its results: those of `log.process` over the same entries.
 *
 * Event time goes by the ticks of a log, which are entries of it. Without them, it goes by nothing until the source completes: then all windows end.
 * So a definition over the past, `log.read` or any list of events, needs no time. For a definition that reads the results of another one, it goes by nothing
 * even with ticks. With `watermark: 'arrival'`, it goes by the clock instead.
 *
 *     source:   --a--b-----c--|
 *               inMemory(countPerWindow)
 *     result:   --------------(2 1)|
 *
 * State is lost with the subscription. Fails with the source, and with a `ProcessError` if a function of the definition throws, after the results before that.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 * import { aggregate, count, define, from, inMemory, keyBy, tumbling } from 'rivulet/streams'
 *
 * const changes = define(
 *   'changes',
 *   { version: 1, lateness: '30s' },
 *   from('monitor.event_stream').pipe(
 *     keyBy(({ source }) => source),
 *     aggregate('per-minute', tumbling('1m'), { changes: count() }),
 *   ),
 * )
 * const client = createClient({ apiKey: 'key' })
 * client.monitors
 *   .follow('mon_1')
 *   .pipe(inMemory(changes, { watermark: 'arrival' }))
 *   .subscribe(console.log)
 * ```
 *
 * @throws ArgumentError at the call, for an unknown option or an invalid argument.
 */
export function inMemory<Result>(
  definition: Definition<Result>,
  options?: DefinitionInMemoryOptions,
): OperatorFunction<StreamInput, ResultEvent<Result> | EventOf<'stage.dropped'>>
export function inMemory(...given: OfFunctions | OfDefinition): OperatorFunction<StreamInput, ResearchEvent> {
  if (isOfDefinition(given)) return definitionInMemory(...given)
  const [name, functions, options = {}] = given
  checkText('name', name)
  checkOptions('functions', functions ?? null, FUNCTION_OPTIONS)
  checkOptions('options', options, MEMORY_OPTIONS)
  const settings = { ...FUNCTION_DEFAULTS, ...functions }
  checkFunctions(settings)
  if (options.onDeadLetter === undefined && settings.onError === 'dead-letter') {
    throw new ArgumentError('onDeadLetter', 'a function, since onError is "dead-letter"', undefined)
  }
  return running(name, settings, asInLog<unknown>(), options, {
    isTimed: ({ recorded }) => recorded !== undefined,
  })
}

type OfFunctions = readonly [name: string, functions: ProcessFunctions<unknown>, options?: InMemoryOptions]

type OfDefinition = readonly [definition: Definition<unknown>, options?: DefinitionInMemoryOptions]

function isOfDefinition(given: OfFunctions | OfDefinition): given is OfDefinition {
  return given[0] instanceof Definition
}

const MEMORY_OPTIONS = ['maxKeys', 'onDeadLetter', 'scheduler']

function definitionInMemory(
  { name, after, functions, reads }: Definition<unknown>,
  options: DefinitionInMemoryOptions = {},
): OperatorFunction<StreamInput, ResearchEvent> {
  checkOptions('options', options, [...MEMORY_OPTIONS, 'watermark'])
  const { watermark = 'ticks', onDeadLetter } = options
  checkOneOf('watermark', watermark, ['ticks', 'arrival'])
  const onError = onDeadLetter === undefined ? 'stop' : 'dead-letter'
  const isTimed = watermark === 'ticks' ? () => true : undefined
  // The results of other definitions may come after the tick that has ended their windows.
  const isRead =
    after.length > 0 && watermark === 'ticks' ? ({ type }: StreamInput) => type !== 'log.tick' : () => true
  const run = running(
    name,
    { ...FUNCTION_DEFAULTS, ...functions, reads, onError },
    asComputed<unknown>(),
    options,
    {
      ...(isTimed && { isTimed }),
      isEnded: true,
    },
  )
  return (source) => source.pipe(filter(isRead), run)
}

/** @param timing How its time moves, as for {@link inTime}. */
function running<State, Stored, Type extends ResearchEventType>(
  name: string,
  functions: FunctionSettings<State, StreamEntryOf<Type>>,
  representation: Representation<State, Stored, ResearchEvent>,
  { maxKeys = 100_000, onDeadLetter, scheduler = asyncScheduler }: InMemoryOptions,
  timing: { readonly isTimed?: (event: StreamInput) => boolean; readonly isEnded?: boolean },
): OperatorFunction<StreamInput, ResearchEvent> {
  checkInteger('maxKeys', maxKeys, 1)
  checkOptionalFunctions({ onDeadLetter })
  const failed = (error: ProcessError) => {
    if (functions.onError === 'stop') throw error
    onDeadLetter?.(error)
  }
  const full = () => {
    throw new RefusedEffect(`it has states or timers of ${maxKeys} keys: at most so many are kept (maxKeys)`)
  }
  const begin = () => new MemoryProcess({ name, functions, representation, maxKeys, full, failed })
  const entryOf = (event: StreamInput) => {
    const { recorded = scheduler.now(), revision = 1, backfill = false } = event
    const isEntry =
      event.recorded !== undefined && event.revision !== undefined && event.backfill !== undefined
    return (isEntry ? event : { ...event, recorded, revision, backfill }) as StreamEntryOf<Type>
  }
  return (source) =>
    source.pipe(
      filter(({ cause }) => cause?.process !== name),
      inTime({ begin, entryOf, ...timing, scheduler }),
    )
}
