import { asyncScheduler, filter } from 'rxjs'
import type { OperatorFunction, SchedulerLike } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkFunction, checkInteger, checkOptions, checkText } from '../protocol/check.ts'
import type { ResearchEvent, ResearchEventType } from '../protocol/event.ts'
import { inTime } from './in-time.ts'
import { MemoryProcess } from './memory-process.ts'
import type { ProcessError } from './process-error.ts'
import { checkFunctions, FUNCTION_DEFAULTS, FUNCTION_OPTIONS } from './process-functions.ts'
import type { ProcessFunctions, StreamEntryOf, StreamInput } from './process-functions.ts'
import { RefusedEffect } from './refused-effect.ts'
import { asInLog } from './representation.ts'

/** Settings of {@link inMemory}. */
export interface InMemoryOptions {
  /**
   * Maximum number of keys with a state, and of timers. An event of a further key fails as if a function had thrown at it. Default 100,000.
   */
  readonly maxKeys?: number
  /** Called for each event or timer that fails, with `onError: 'dead-letter'`, which requires it. An error that it throws errors the result. Default: none. */
  readonly onDeadLetter?: (error: ProcessError) => void
  /** Scheduler for timers and for the time at which events come. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
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
  options: InMemoryOptions = {},
): OperatorFunction<StreamInput, ResearchEvent> {
  checkText('name', name)
  checkOptions('functions', functions ?? null, FUNCTION_OPTIONS)
  const settings = { ...FUNCTION_DEFAULTS, ...functions }
  checkFunctions(settings)
  checkOptions('options', options, ['maxKeys', 'onDeadLetter', 'scheduler'])
  const { maxKeys = 100_000, onDeadLetter, scheduler = asyncScheduler } = options
  checkInteger('maxKeys', maxKeys, 1)
  if (onDeadLetter !== undefined) checkFunction('onDeadLetter', onDeadLetter)
  else if (settings.onError === 'dead-letter') {
    throw new ArgumentError('onDeadLetter', 'a function, since onError is "dead-letter"', onDeadLetter)
  }
  const failed = (error: ProcessError) => {
    if (settings.onError === 'stop') throw error
    onDeadLetter?.(error)
  }
  const full = () => {
    throw new RefusedEffect(`it has states or timers of ${maxKeys} keys: at most so many are kept (maxKeys)`)
  }
  const begin = () =>
    new MemoryProcess({ name, functions: settings, representation: asInLog<State>(), maxKeys, full, failed })
  const entryOf = ({ recorded = scheduler.now(), revision = 1, backfill = false, ...event }: StreamInput) =>
    ({ ...event, recorded, revision, backfill }) as StreamEntryOf<Type>
  return (source) =>
    source.pipe(
      filter(({ cause }) => cause?.process !== name),
      inTime({ begin, entryOf, isTimed: ({ recorded }) => recorded !== undefined, scheduler }),
    )
}
