import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOneOf, checkOptions } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { JoinResult } from '../../protocol/stage.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import { hashOf } from '../effects.ts'
import type { ProcessContext, StreamEntry } from '../process-functions.ts'
import { drop, REPORT, reportDropped } from './dropped.ts'
import type { WithDropped } from './dropped.ts'
import { KeyedStream } from './event-stream.ts'
import { dayOf, placed, timeText } from './placed.ts'
import { checkStageName } from './stage.ts'
import type { Row, Stage, StageSettings } from './stage.ts'
import { spanOf } from './windows.ts'
import type { TimeSpan } from './windows.ts'

/** Settings of {@link join}. */
export interface JoinOptions<Kind extends 'inner' | 'left' = 'inner' | 'left'> {
  /** Maximum time between the two events, in either order. */
  readonly within: TimeSpan
  /** Whether an event of the left stream without a partner is a result too: `left`. Default `inner`. */
  readonly kind?: Kind
}

/** What `data` is for the results of a join. */
export interface JoinResultOf<Name extends string, Left, Right> extends JoinResult {
  readonly stage: Name
  readonly left: Left
  readonly right: Right
}

/** An event that waits for partners, as the data of a timer. */
interface WaitingItem {
  readonly at: number
  readonly item: unknown
  /** Whether it has had a partner. Only if it is a result without one. */
  readonly isAlone?: boolean
}

type Side = 'left' | 'right'

/**
 * Pairs of events of two streams that have the same key and happened within a time of each other: `join.result`. With `left`, also each event of this
 * stream without a partner, once the watermark has passed the last moment at which one could have happened.
 *
 * Each event that waits is a row of its own. An event that comes after the watermark has passed it is left out, and reported by `stage.dropped`. An
 * event has at most 256 partners: one more fails as a function that throws. Items are stored: use `map` to keep what the result needs.
 *
 *     left:      -a------b-----|
 *     right:     ---1--2-------|
 *                join('pairs', right, { within: … })
 *     result:    ---a1--b2-----|
 *
 * ```ts
 * import { define, from, join, keyBy, map } from 'rivulet/streams'
 *
 * const failures = from('monitor.error').pipe(keyBy(({ source }) => source))
 * define(
 *   'changes-and-failures',
 *   { version: 1 },
 *   from('monitor.event_stream').pipe(
 *     map(({ source, data }) => ({ source, text: data.output.content })),
 *     keyBy(({ source }) => source),
 *     join('pairs', failures, { within: '10m', kind: 'left' }),
 *   ),
 * )
 * ```
 *
 * @param name The name of the stage, unique in its definition, of up to 100 characters.
 * @throws ArgumentError for an invalid argument.
 */
export function join<Left, Right, const Name extends string, const Kind extends 'inner' | 'left' = 'inner'>(
  name: Name,
  right: KeyedStream<Right>,
  options: JoinOptions<Kind>,
): (left: KeyedStream<Left>) => Stage<JoinResultOf<Name, Left, 'left' extends Kind ? Right | null : Right>> {
  checkStageName(name)
  checkOptions('options', options, ['within', 'kind'])
  const { kind = 'inner' } = options
  checkOneOf('kind', kind, ['inner', 'left'])
  const within = spanOf('within', options.within)
  if (!(right instanceof KeyedStream))
    throw new ArgumentError('right', 'a stream with keys, as `keyBy` makes it', right)
  return (left) => {
    if (!(left instanceof KeyedStream))
      throw new ArgumentError('join', 'given events with keys: put `keyBy` before it', left)
    const pairs = pairsOf(name, within, kind === 'left')
    const rows = (entry: StreamEntry, { backfill }: StageSettings): readonly Row<WithDropped>[] => {
      if (entry.revision > 1 || (entry.backfill && backfill === 'ignore')) return []
      return [...pairs.rows('left', left, entry), ...pairs.rows('right', right, entry)]
    }
    return {
      name,
      types: [...new Set([...left.origin.types, ...right.origin.types])],
      after: [...left.origin.after, ...right.origin.after],
      shape: JSON.stringify({ join: kind, within }),
      rows,
      timer: pairs.timer,
    }
  }
}

function pairsOf(name: string, within: number, isLeft: boolean) {
  const append = (
    key: string,
    {
      at,
      left,
      right,
      complete,
    }: { readonly at: number; readonly left: unknown; readonly right: unknown; readonly complete: boolean },
    context: Pick<ProcessContext<unknown>, 'append'>,
  ) => {
    const data: JoinResult = { stage: name, key, time: rfc3339(at), left, right, complete }
    context.append({ type: 'join.result', data })
  }
  const rows = <Item>(
    side: Side,
    stream: KeyedStream<Item>,
    entry: StreamEntry,
  ): readonly Row<WithDropped>[] => {
    const item = stream.select(entry)
    const key = item === undefined ? undefined : stream.keyOf(item)
    if (key === undefined) return []
    const { at, isWholeDay } = placed(entry)
    if (isWholeDay) {
      return [
        { key: [name, key, 'day'], take: (state, context) => drop(state, dayOf(at), 'whole_day', context) },
      ]
    }
    const other: Side = side === 'left' ? 'right' : 'left'
    const reads = { from: `${other} ${timeText(at - within)}`, to: `${other} ${timeText(at + within + 1)}` }
    return [
      {
        key: [name, key],
        reads,
        take(state, context) {
          if (at < context.now('event')) return drop(state, { start: at, end: at }, 'late', context)
          const due = (from: number) => from + within + 1
          let isAlone = true
          for (const { name: timer, data } of context.waiting ?? []) {
            if (timer < reads.from || timer >= reads.to) continue
            const partner = waitingOf(data)
            isAlone = false
            const pair =
              side === 'left' ? { left: item, right: partner.item } : { left: partner.item, right: item }
            append(key, { at: Math.max(at, partner.at), ...pair, complete: true }, context)
            if (partner.isAlone === true) {
              const { at: from, item: own } = partner
              context.timer(timer, due(from), { clock: 'event', data: { at: from, item: own } })
            }
          }
          const waiting: WaitingItem = { at, item, ...(isLeft && side === 'left' && isAlone && { isAlone }) }
          context.timer(`${side} ${timeText(at)} ${hashOf([entry.source, entry.id])}`, due(at), {
            clock: 'event',
            data: waiting,
          })
        },
      },
    ]
  }
  const timer: Stage<unknown, WithDropped>['timer'] = (row, state, _due, context, timerName, data) => {
    if (timerName === REPORT) {
      if (state?.dropped !== undefined) reportDropped(row, state.dropped, context)
      return context.set(null)
    }
    const { at, item, isAlone } = waitingOf(data)
    if (isAlone === true) append(row[1], { at, left: item, right: null, complete: context.complete }, context)
  }
  return { rows, timer }
}

/** @param data As it was stored. */
function waitingOf(data: unknown): WaitingItem {
  const { at, item, isAlone }: Record<string, unknown> = isObject(data) ? data : {}
  return { at: Number(at), item, isAlone: isAlone === true }
}
