import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkObject } from '../../protocol/check.ts'
import type { WindowResult } from '../../protocol/stage.ts'
import type { StreamEntry } from '../process-functions.ts'
import { checkAggregate } from './aggregates.ts'
import type { Aggregate } from './aggregates.ts'
import { KeyedStream } from './event-stream.ts'
import { fixedWindows } from './fixed-windows.ts'
import { placed } from './placed.ts'
import { tallyOf } from './tally.ts'
import type { WindowKind } from './tally.ts'
import { sessionWindows } from './session-windows.ts'
import { checkStageName } from './stage.ts'
import type { Row, Stage, StageSettings } from './stage.ts'
import { checkedWindows } from './windows.ts'
import type { Windows } from './windows.ts'

/** What `data` is for the results of a stage. */
export interface ResultOf<Name extends string, Values> extends WindowResult {
  readonly stage: Name
  readonly values: Readonly<Values>
}

/** Maximum number of values of a stage. */
const MAX_VALUES = 100

/**
 * Values over the events of each key and window. One result for each window that has an event, once the watermark has passed its end: `window.result`,
 * whose time is that end.
 *
 * Its state is a row for each key and window, whatever the number of events. Events that come after the end of their window by more than the `lateness`
 * of the definition are left out, and reported by `stage.dropped`.
 *
 *     events:    -a-b-|--c-|
 *                aggregate('n', tumbling(…), { events: count() })
 *     result:    ------2----1|
 *
 * ```ts
 * import { aggregate, average, count, define, from, keyBy, max, tumbling } from 'rivulet/streams'
 *
 * define(
 *   'searches',
 *   { version: 1, lateness: '30s' },
 *   from('gateway.search').pipe(
 *     keyBy(({ data }) => data.sub),
 *     aggregate('per-hour', tumbling('1h'), {
 *       searches: count(),
 *       most: max(({ data }) => data.response.results.length),
 *       usual: average(({ data }) => data.response.results.length),
 *     }),
 *   ),
 * )
 * ```
 *
 * @param name The name of the stage, unique in its definition, of up to 100 characters.
 * @param values 1 to 100 aggregates by name.
 * @throws ArgumentError for an invalid argument.
 */
export function aggregate<Item, const Name extends string, Of extends object>(
  name: Name,
  windows: Windows,
  values: { readonly [Value in keyof Of]: Aggregate<Item, Of[Value]> },
): (stream: KeyedStream<Item>) => Stage<ResultOf<Name, Of>> {
  checkStageName(name)
  checkObject('values', values)
  const aggregates: readonly (readonly [string, Aggregate<Item, unknown>])[] = Object.entries(values)
  if (aggregates.length === 0 || aggregates.length > MAX_VALUES) {
    throw new ArgumentError('values', `an object of 1 to ${MAX_VALUES} aggregates`, values)
  }
  for (const [value, given] of aggregates) checkAggregate(`values.${value}`, given)
  const tally = tallyOf(name, aggregates)
  const checked = checkedWindows(windows)
  const kind = checked.kind === 'session' ? sessionWindows(checked, tally) : fixedWindows(checked, tally)
  const kinds = aggregates.map(([value, each]) => [value, each.kind])
  return (stream) => {
    if (!(stream instanceof KeyedStream))
      throw new ArgumentError('aggregate', 'given events with keys: put `keyBy` before it', stream)
    return stageOf(name, stream, kind, JSON.stringify([checked, kinds]))
  }
}

function stageOf<Item, State>(
  name: string,
  stream: KeyedStream<Item>,
  kind: WindowKind<Item, State>,
  shape: string,
): Stage<never, State> {
  const { origin, select, keyOf } = stream
  const rows = (entry: StreamEntry, { backfill }: StageSettings): readonly Row<State>[] => {
    if (entry.revision > 1 || (entry.backfill && backfill === 'ignore')) return NO_ROWS
    const item = select(entry)
    if (item === undefined) return NO_ROWS
    const key = keyOf(item)
    return key === undefined ? NO_ROWS : kind.rows(key, item, placed(entry))
  }
  return { name, types: origin.types, after: origin.after, shape, rows, timer: kind.timer }
}

const NO_ROWS: readonly never[] = []
