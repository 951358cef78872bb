import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkFunction, checkText } from '../../protocol/check.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import type { StreamEntry, StreamEntryOf } from '../process-functions.ts'
import { RefusedEffect } from '../refused-effect.ts'
import { Definition, isResultType, RESULT_TYPES } from './define.ts'
import type { ResultEntry } from './define.ts'

/** What a stream gives for an entry; undefined for none. */
type Select<Item> = (entry: StreamEntry) => Item | undefined

/** Where a stream comes from. */
interface Origin {
  readonly types: readonly ResearchEventType[]
  /** The definitions whose results it reads: one at most. */
  readonly after: readonly string[]
}

/** What has `pipe`, as an Observable has. */
abstract class Pipeable {
  /** Applies the functions one after the other, each to the result of the one before. */
  pipe<A>(a: (stream: this) => A): A
  pipe<A, B>(a: (stream: this) => A, b: (stream: A) => B): B
  pipe<A, B, C>(a: (stream: this) => A, b: (stream: A) => B, c: (stream: B) => C): C
  pipe<A, B, C, D>(a: (stream: this) => A, b: (stream: A) => B, c: (stream: B) => C, d: (stream: C) => D): D
  pipe<A, B, C, D, E>(
    a: (stream: this) => A,
    b: (stream: A) => B,
    c: (stream: B) => C,
    d: (stream: C) => D,
    e: (stream: D) => E,
  ): E
  pipe<A, B, C, D, E, F>(
    a: (stream: this) => A,
    b: (stream: A) => B,
    c: (stream: B) => C,
    d: (stream: C) => D,
    e: (stream: D) => E,
    f: (stream: E) => F,
  ): F
  // `never`: the overloads above are what callers have.
  pipe(...steps: readonly ((stream: never) => unknown)[]): unknown {
    return steps.reduce<unknown>((stream, step) => {
      checkFunction('pipe', step)
      return step(stream as never)
    }, this)
  }
}

/** Events of a definition before they have a key. Made by {@link from}. */
export class EventStream<Item> extends Pipeable {
  /** @internal */
  readonly origin: Origin
  /** @internal */
  readonly select: Select<Item>

  /** @internal */
  constructor(origin: Origin, select: Select<Item>) {
    super()
    this.origin = origin
    this.select = select
  }
}

/** Events of a definition with their keys. Made by {@link keyBy}. */
export class KeyedStream<Item> extends Pipeable {
  /** @internal */
  readonly origin: Origin
  /** @internal */
  readonly select: Select<Item>
  /** The key of an item; undefined skips it. @internal */
  readonly keyOf: (item: Item) => string | undefined

  /** @internal */
  constructor({ origin, select }: EventStream<Item>, keyOf: (item: Item) => string | undefined) {
    super()
    this.origin = origin
    this.select = select
    this.keyOf = keyOf
  }
}

/**
 * The events of some types. Each event counts once: a more complete duplicate of it is skipped.
 *
 * ```ts
 * import { aggregate, count, define, from, keyBy, tumbling } from 'rivulet/streams'
 *
 * define(
 *   'errors',
 *   { version: 1 },
 *   from('monitor.error').pipe(
 *     keyBy(({ source }) => source),
 *     aggregate('per-day', tumbling('1d'), { errors: count() }),
 *   ),
 * )
 * ```
 *
 * @throws ArgumentError without a type, or for one that is no text.
 */
export function from<const Type extends ResearchEventType>(
  ...types: readonly [Type, ...Type[]]
): EventStream<StreamEntryOf<Type>>
/**
 * The results of another definition, which runs over the same log. The process of this one comes `after` its process, so that no result is late. A result
 * has the event time of the last moment of its window.
 */
export function from<Result>(definition: Definition<Result>): EventStream<ResultEntry<Result>>
export function from(
  first: Definition<unknown> | ResearchEventType,
  ...others: readonly ResearchEventType[]
): EventStream<StreamEntry> {
  if (first instanceof Definition) {
    const { name, source } = first
    return new EventStream({ types: RESULT_TYPES, after: [name] }, (entry) =>
      isResultType(entry.type) && entry.source === source ? entry : undefined,
    )
  }
  const types = [first, ...others]
  for (const [n, type] of types.entries()) checkText(`types[${n}]`, type)
  const wanted = new Set<string>(types)
  return new EventStream({ types, after: [] }, (entry) => (wanted.has(entry.type) ? entry : undefined))
}

/**
 * Only the events for which the function returns true. It must depend on its argument alone.
 *
 *     events:    -a-b-c-|
 *                where((event) => event is not b)
 *     result:    -a---c-|
 *
 * ```ts
 * import { from, where } from 'rivulet/streams'
 *
 * from('task_run.state').pipe(where(({ data }) => data.run.status === 'failed'))
 * ```
 */
export function where<Item, Narrowed extends Item>(
  wanted: (item: Item) => item is Narrowed,
): (stream: EventStream<Item>) => EventStream<Narrowed>
export function where<Item>(wanted: (item: Item) => boolean): (stream: EventStream<Item>) => EventStream<Item>
export function where<Item>(
  wanted: (item: Item) => boolean,
): (stream: EventStream<Item>) => EventStream<Item> {
  checkFunction('wanted', wanted)
  return ({ origin, select }) =>
    new EventStream(origin, (entry) => {
      const item = select(entry)
      return item !== undefined && wanted(item) ? item : undefined
    })
}

/**
 * Another value for each event; undefined leaves it out. The event keeps its time.
 *
 *     events:    -a-b-c-|
 *                map((event) => 2 × event)
 *     result:    -A-B-C-|
 *
 * ```ts
 * import { from, map } from 'rivulet/streams'
 *
 * from('monitor.event_stream').pipe(map(({ source, data }) => ({ source, text: data.output.content })))
 * ```
 */
export function map<Item, Value>(
  value: (item: Item) => Value | undefined,
): (stream: EventStream<Item>) => EventStream<Value> {
  checkFunction('value', value)
  return ({ origin, select }) =>
    new EventStream(origin, (entry) => {
      const item = select(entry)
      return item === undefined ? undefined : value(item)
    })
}

/**
 * Divides events by a key: what follows is computed for each key by itself.
 *
 *     events:    -a1-b1-a2-|
 *     key a:     -a1----a2-|
 *     key b:     ----b1----|
 *
 * ```ts
 * import { from, keyBy } from 'rivulet/streams'
 *
 * from('monitor.completion').pipe(keyBy(({ source }) => source))
 * ```
 *
 * @param key A text of up to 500 characters as JSON; undefined or null skips the event. Another value fails as a function that throws.
 */
export function keyBy<Item>(
  key: (item: Item) => string | null | undefined,
): (stream: EventStream<Item>) => KeyedStream<Item> {
  checkFunction('key', key)
  return (stream) => {
    if (!(stream instanceof EventStream)) {
      throw new ArgumentError('keyBy', 'given events without a key, as `from` makes them', stream)
    }
    return new KeyedStream(stream, (item) => checkedKey(key(item)))
  }
}

function checkedKey(given: unknown): string | undefined {
  if (given == null) return undefined
  if (typeof given === 'string' && JSON.stringify(given).length <= MAX_KEY) return given
  const found = typeof given === 'string' ? `one of ${given.length}` : typeof given
  throw new RefusedEffect(
    `keyBy: its key must be a text of up to ${MAX_KEY} characters as JSON, not ${found}`,
  )
}

/** Maximum length of a key as JSON, in characters. The key of a row has it with the name of the stage and the window. */
const MAX_KEY = 500
