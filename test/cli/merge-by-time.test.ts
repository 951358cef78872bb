import { groupEvent } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { Gate, gateOf, underGate } from 'rivulet/operators'
import { from, NEVER, Observable, Subject, throwError } from 'rxjs'
import { describe, expect, it, vi } from 'vitest'
import { mergeByTime } from '../../src/cli/merge-by-time.ts'

/** An event at this second of an hour; null for one without a time. */
function event(name: string, second: number | null): ResearchEvent {
  const modified_at = second === null ? null : new Date(second * 1_000).toISOString()
  const run = { run_id: name, status: 'completed', modified_at }
  return groupEvent('g', { type: 'task_run.state', event_id: name, run }, 'stream')
}

function record(merged: Observable<ResearchEvent>) {
  const seen: string[] = []
  const complete = vi.fn<() => void>()
  const error = vi.fn<(error: unknown) => void>()
  const subscription = merged.subscribe({
    next: ({ source }) => seen.push(source.slice(source.lastIndexOf('/') + 1)),
    complete,
    error,
  })
  return { seen, complete, error, subscription }
}

describe('streams merged by time', () => {
  it('are emitted in the order of time, and complete together', () => {
    const { seen, complete } = record(
      mergeByTime([
        from([event('a', 1), event('d', 4)]),
        from([event('b', 2), event('c', 3), event('e', 5)]),
      ]),
    )

    expect(seen).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(complete).toHaveBeenCalledOnce()
  })

  it('keep their own order, even if an event is earlier than its predecessor or has no time', () => {
    const { seen } = record(
      mergeByTime([
        from([event('a', 5), event('b', 1), event('c', null)]),
        from([event('d', 4), event('e', 6)]),
      ]),
    )

    expect(seen).toEqual(['d', 'a', 'b', 'c', 'e'])
  })

  it('emit nothing while the next event of a stream is unknown', () => {
    const late = new Subject<ResearchEvent>()
    const { seen, complete } = record(mergeByTime([from([event('b', 2), event('c', 3)]), late]))
    const before = [...seen]
    late.next(event('a', 1))
    const after = [...seen]
    late.complete()

    expect(before).toEqual([])
    expect(after).toEqual(['a'])
    expect(seen).toEqual(['a', 'b', 'c'])
    expect(complete).toHaveBeenCalledOnce()
  })

  it('are paused after their next event', () => {
    let read = 0
    const endless = new Observable<ResearchEvent>((subscriber) => {
      const gate = gateOf(subscriber)
      const isOpen = () => gate?.closed === false
      while (isOpen()) subscriber.next(event(`n${(read += 1)}`, read))
    })
    record(mergeByTime([endless, NEVER]))

    expect(read).toBe(1)
  })

  it('obey the gate of their consumer', () => {
    const gate = new Gate()
    gate.close()
    const { seen } = record(mergeByTime([from([event('a', 1), event('b', 2)])]).pipe(underGate(gate)))
    const held = [...seen]
    gate.open()

    expect(held).toEqual([])
    expect(seen).toEqual(['a', 'b'])
  })

  it('fail with the first that fails, and end with the subscription', () => {
    const live = new Subject<ResearchEvent>()
    const failed = record(mergeByTime([live, throwError(() => new Error('gone'))]))
    const wasObserved = live.observed
    const ended = record(mergeByTime([live]))
    ended.subscription.unsubscribe()

    expect(failed.error).toHaveBeenCalledWith(new Error('gone'))
    expect(wasObserved).toBe(false)
    expect(live.observed).toBe(false)
  })

  it('complete immediately when there are none', () => {
    expect(record(mergeByTime([])).complete).toHaveBeenCalledOnce()
  })
})
