import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkFunction } from '../../protocol/check.ts'
import type { JoinResult } from '../../protocol/stage.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { StreamEntry } from '../process-functions.ts'
import { keyBy, KeyedStream } from './event-stream.ts'
import type { EventStream } from './event-stream.ts'
import type { JoinResultOf } from './join.ts'
import { placed } from './placed.ts'
import { checkStageName } from './stage.ts'
import type { Row, Stage } from './stage.ts'

/** The latest item of a key. */
export interface Latest {
  /** Its event time, in Unix ms. */
  readonly at: number
  readonly item: unknown
}

/** The latest event of each key, a stage of a definition. Made by {@link latestBy}. */
export interface Table<Item> extends Stage<never, Latest> {
  /** @internal */
  readonly item?: () => Item
}

const SHAPE = '{"table":"latest"}'

/** Whether it is a table, and no other stage. */
export function isTable(stage: unknown): boolean {
  const { shape }: Partial<Stage<unknown>> = Object(stage)
  return shape === SHAPE
}

/**
 * A table: the event of each key that happened last, and of several at one time the one that came last. It takes a more complete duplicate of an event, and
 * events of a first walk into the past.
 *
 * `log.table` reads it from outside, and {@link enrich} within the definition. Items are stored: use `map` to keep what is needed.
 *
 * ```ts
 * import { define, from, latestBy, map } from 'rivulet/streams'
 *
 * const snapshots = from('monitor.snapshot').pipe(
 *   map(({ source, data }) => ({ source, changed: data.changed_output })),
 *   latestBy('snapshots', ({ source }) => source),
 * )
 * define('monitors', { version: 1 }, snapshots)
 * ```
 *
 * @param name The name of the stage, unique in its definition, of up to 100 characters.
 * @param key As for {@link keyBy}.
 * @throws ArgumentError for an invalid argument.
 */
export function latestBy<Item>(
  name: string,
  key: (item: Item) => string | null | undefined,
): (stream: EventStream<Item>) => Table<Item> {
  checkStageName(name)
  checkFunction('key', key)
  return (stream) => {
    const { origin, select, keyOf } = keyBy(key)(stream)
    const rows = (entry: StreamEntry): readonly Row<Latest>[] => {
      const item = select(entry)
      const own = item === undefined ? undefined : keyOf(item)
      if (own === undefined) return []
      const { at } = placed(entry)
      return [
        {
          key: [name, own],
          take(state, context) {
            if (state === null || at >= state.at) context.set({ at, item })
          },
        },
      ]
    }
    return { name, types: origin.types, after: origin.after, shape: SHAPE, rows, timer() {} }
  }
}

/**
 * Each event with the row that a table of the same definition has for its key when the event comes: `join.result`, whose `right` is null without a row.
 *
 *     table:     -a1-------a2----|
 *     events:    -----x--------y-|
 *                enrich('known', table)
 *     result:    -----x1-------y2|
 *
 * ```ts
 * import { define, enrich, from, keyBy, latestBy } from 'rivulet/streams'
 *
 * const snapshots = from('monitor.snapshot').pipe(latestBy('snapshots', ({ source }) => source))
 * define(
 *   'errors',
 *   { version: 1 },
 *   snapshots,
 *   from('monitor.error').pipe(
 *     keyBy(({ source }) => source),
 *     enrich('with-snapshot', snapshots),
 *   ),
 * )
 * ```
 *
 * @param name The name of the stage, unique in its definition, of up to 100 characters.
 * @throws ArgumentError for an invalid argument.
 */
export function enrich<Item, Known, const Name extends string>(
  name: Name,
  table: Table<Known>,
): (stream: KeyedStream<Item>) => Stage<JoinResultOf<Name, Item, Known | null>> {
  checkStageName(name)
  if (!isTable(table)) throw new ArgumentError('table', 'a table, as `latestBy` makes it', table)
  return (stream) => {
    if (!(stream instanceof KeyedStream))
      throw new ArgumentError('enrich', 'given events with keys: put `keyBy` before it', stream)
    const { origin, select, keyOf } = stream
    return {
      name,
      types: origin.types,
      after: origin.after,
      shape: JSON.stringify({ enrich: table.name }),
      table,
      rows(entry, { backfill }) {
        if (entry.revision > 1 || (entry.backfill && backfill === 'ignore')) return []
        const item = select(entry)
        const key = item === undefined ? undefined : keyOf(item)
        if (key === undefined) return []
        const time = rfc3339(placed(entry).at)
        return [
          {
            // It reads the row of the table.
            key: [table.name, key],
            take(state: Latest | null, context) {
              const data: JoinResult = {
                stage: name,
                key,
                time,
                left: item,
                right: state?.item ?? null,
                complete: true,
              }
              context.append({ type: 'join.result', data })
            },
          },
        ]
      },
      timer() {},
    }
  }
}
